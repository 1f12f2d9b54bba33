"""Why a job of PBS waits, in words."""


def in_words(reason: str) -> str:
    """The server's comment on a waiting job: "Not Running: Insufficient …" -> "insufficient …"."""
    if reason == "Dependency":
        return "waits for another job"
    words = reason.removeprefix("Not Running: ").removeprefix("Can Never Run: ").strip()
    return f"{words[:1].lower()}{words[1:]}" if words else "not yet considered"
