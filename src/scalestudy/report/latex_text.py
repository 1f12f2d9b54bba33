"""Texts as LaTeX prints them: every sign that is a command escaped, long words with places to break.

Signs are those of the encodings OT1 and T1; others are written by a sign of mathematics, by the letter
they are made of, or as a question mark, so that whatever a name holds a page compiles.
"""

import re
import unicodedata

from scalestudy.report.document import pieces

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\char36{}", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"{\ttfamily\char94}", "~": r"{\ttfamily\char126}", "<": r"\textless{}",
    "§": r"$\mathsection$", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": "`{}", "'": "'{}",
    "−": "$-$", "–": "--", "—": "---", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$",
    "≤": r"$\leq$", "≈": r"$\approx$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "…": r"\dots{}",
    "“": "``", "”": "''", "‘": "`", "’": "'", "„": "''", "√": r"$\surd$", "∞": r"$\infty$", "÷": r"$\div$",
    "°": r"$^\circ$", "µ": r"$\mu$", "¹": "$^1$", "²": "$^2$", "³": "$^3$", "ª": "$^a$", "º": "$^o$",
    "¬": r"$\neg$", "¼": "1/4", "½": "1/2", "¾": "3/4", "€": "EUR", "¢": "c", "¤": "?", "¥": "JPY",
    "¦": r"\textbar{}", "¨": "?", "¯": "?", "´": "'{}", "¸": ",", "®": "(R)", "©": "(C)", "™": "(TM)",
    "¶": r"$\mathparagraph$", "£": r"$\mathsterling$", "\u00a0": "~", "\u2009": r"\,",
    "\u202f": r"\,", "\u00ad": r"\-", "•": r"$\bullet$",
    "κ": r"$\kappa$", "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$",
    "ε": r"$\epsilon$", "λ": r"$\lambda$", "μ": r"$\mu$", "π": r"$\pi$", "ρ": r"$\rho$", "σ": r"$\sigma$",
    "τ": r"$\tau$", "φ": r"$\phi$", "χ": r"$\chi$", "ω": r"$\omega$", "θ": r"$\theta$", "η": r"$\eta$",
    "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "Ω": r"$\Omega$", "Π": r"$\Pi$",
}  # fmt: skip
CODE = SPECIAL | {"<": "<", ">": ">", "|": "|", '"': r"\char34{}", "'": r"\char39{}"}
"""The same in a typewriter's letters, which have signs that others lack."""
LETTERS = {"ŉ": "'n", "Ŧ": "T", "ŧ": "t", "Ħ": "H", "ħ": "h", "Ŀ": "L", "ŀ": "l", "ĸ": "k", "ſ": "s"}
"""Letters within Latin Extended-A that LaTeX's UTF-8 does not know."""
LONG = 18
"""Letters of a word that gets places to break after its signs."""
RUN = 12
"""Letters without a sign after which it is broken anywhere."""


def escaped(text: str) -> str:
    """The text so that LaTeX prints it as it stands, code as code."""
    flat = " ".join(text.split())
    return "".join(code(part) if is_code else _words(part, SPECIAL) for part, is_code in pieces(flat))


def code(text: str) -> str:
    """A line of code within a text; its spaces are kept."""
    return rf"\texttt{{{code_line(text)}}}"


def code_line(text: str) -> str:
    """A line of code, where the letters are a typewriter's already."""
    indent = len(text) - len(text.lstrip(" "))
    return "~" * indent + _words(text[indent:], CODE).replace(" ", r"\ ")


def _words(text: str, signs: dict[str, str]) -> str:
    return " ".join(_word(word, signs) for word in text.split(" "))


def _word(word: str, signs: dict[str, str]) -> str:
    long, run = len(word) >= LONG, 0
    made = []
    for place, sign in enumerate(word):
        made.append(_sign(sign, signs, word[place - 1] if place else ""))
        if not long or place == len(word) - 1:
            continue
        run = run + 1 if sign.isalnum() else 0
        if (not sign.isalnum() and sign not in "([{<") or run >= RUN:
            made.append(r"\allowbreak{}")
            run = 0
    return "".join(made)


def _sign(sign: str, signs: dict[str, str], before: str) -> str:
    if sign in signs:
        return signs[sign]
    if sign in LETTERS:
        return LETTERS[sign]
    if sign in "-,<>?!" and sign == before:
        return "{}" + sign  # two of them would become one other sign
    if sign.isprintable() and ord(sign) < 0x180:
        return sign
    base = unicodedata.normalize("NFKD", sign)
    plain = [each for each in base if not unicodedata.combining(each) and each.isprintable()]
    told = "".join(signs.get(each, each) for each in plain if ord(each) < 0x7F)
    return told or ("" if unicodedata.combining(sign) else "?")


def plain(text: str) -> str:
    """The text without code, for what a PDF's own title holds."""
    return re.sub(r"[^A-Za-z0-9 .,:-]", "", text)
