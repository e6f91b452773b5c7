"""Settings with holes: the values that are right, so that cross-field rules can run beside values that are wrong."""

from typing import NoReturn


class UnavailableError(Exception):
    """A rule asked for a value that is itself wrong or missing; that is reported already."""


class Hole:
    """Stands for such a value: whatever is done with it raises UnavailableError."""

    def _missing(self, *_: object) -> NoReturn:
        raise UnavailableError

    __getattr__ = __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _missing
    __iter__ = __len__ = __contains__ = __getitem__ = __hash__ = __str__ = __format__ = _missing
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _missing
    __int__ = __float__ = __index__ = __call__ = _missing


HOLE = Hole()
