"""What a server's answer means: the file, another part of it, a page in its place, or a broken connection."""

import re
from typing import TYPE_CHECKING

from scalestudy.errors import UserError

if TYPE_CHECKING:
    from requests import Response

_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be another a moment later."""


class Broken(Exception):
    """A connection that ended, or stood still, before the file was whole."""


def continues(response: "Response", have: int) -> bool:
    """Whether it sends what comes after `have` bytes; a server may ignore that and send all."""
    if response.status_code != 206:
        return False
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != have:
        raise Broken(f"sent another part than asked for ({response.headers.get('Content-Range')})")
    return True


def refuse(response: "Response", url: str) -> None:
    """Refuse errors, and pages in place of files: those of proxies, logins and maintenance."""
    status = f"{response.status_code} {response.reason}".strip()
    page = "html" in response.headers.get("Content-Type", "").lower()
    if response.status_code in _PASSING:
        raise Broken(f"answered {status}")
    if response.status_code not in (200, 206) or page:
        raise UserError(
            f"the file {url}",
            f"{status}{_title(response) if page else ''} from {host(response.url)}",
            "See whether this address opens in a browser. Behind a proxy set https_proxy; where there is a "
            "mirror, SCALESTUDY_MIRROR; or fetch the file elsewhere and put it in place by hand.",
        )


def _title(response: "Response") -> str:
    """What a page says of itself, of its first kilobytes."""
    try:
        text = response.raw.read(16384, decode_content=True).decode("utf-8", "replace")
    except Exception:  # whatever a broken page raises, it is a page
        text = ""
    found = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = " ".join(found[1].split())[:100] if found else ""
    return f" and a page of HTML ({words!r})" if words else " and a page of HTML"


def host(url: str) -> str:
    """The host of an address."""
    return url.split("/")[2] if "://" in url else url


def cause(error: BaseException) -> str:
    """What broke a connection, in few words."""
    text = str(error)
    if "timed out" in text.lower():
        return "sent nothing for too long"
    for known in ("Name or service not known", "Temporary failure in name resolution", "Connection refused"):
        if known in text:
            return f"could not be reached ({known})"
    if "CERTIFICATE" in text.upper():
        return "has a certificate that is not trusted here (REQUESTS_CA_BUNDLE names a site's own)"
    if "ProxyError" in type(error).__name__:
        return "could not be reached through the proxy"
    return "broke the connection"
