"""torch and skorch are an extra: say so where they are missing."""

from importlib.util import find_spec


def require_torch(user, packages=("torch", "skorch")):
    """Raise an ImportError that says what to install, if torch or skorch is missing.

    Parameters
    ----------
    user : str
        What needs them.
    packages : tuple of str, default=("torch", "skorch")
        Which of the packages of the extra "torch" it needs.

    Raises
    ------
    ImportError
        If one of them is not installed.

    Examples
    --------
    >>> from skextra.utils import require_torch
    >>> require_torch("This example")
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'{user} needs {" and ".join(missing)}: pip install "skextra[torch]"'
        )
