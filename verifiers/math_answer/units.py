"""Units of measurement as factors of base units, for comparing `50 mm` with `5 cm`.

Values are the exact ones of the SI brochure (9th edition, 2019) and of the international yard and pound
agreement (1959).  A base unit is its own symbol, so that unlike units never compare equal.  Nouns that are
counted ("apples") are base units of their own.  Not covered: temperatures, whose scales differ by an offset
(each scale is its own base unit), and currencies against each other.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

_SI_PREFIX: Final[dict[str, int]] = {"n": -9, "u": -6, "m": -3, "c": -2, "d": -1, "k": 3, "M": 6, "G": 9}
_LONG_PREFIX: Final[dict[str, int]] = {
    "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "kilo": 3, "mega": 6, "giga": 9,
}  # fmt: skip

Factor = tuple[Fraction, dict[str, int]]


def _table() -> dict[str, Factor]:
    table: dict[str, Factor] = {}

    def add(names: str, factor: Fraction | int | str, **powers: int) -> None:
        for name in names.split():
            table[name] = (Fraction(factor), powers)

    def add_si(short: str, long: str, factor: Fraction | int | str, prefixes: str, **powers: int) -> None:
        scale = Fraction(factor)
        add(f"{short} {long} {long}s" if short else f"{long} {long}s", scale, **powers)
        for prefix in prefixes:
            add(prefix + short, scale * Fraction(10) ** _SI_PREFIX[prefix], **powers)
        for prefix, power in _LONG_PREFIX.items():
            add(f"{prefix}{long} {prefix}{long}s", scale * Fraction(10) ** power, **powers)

    add_si("m", "meter", 1, "numcdkM", m=1)
    add("metre metres", 1, m=1)
    add("kilometre kilometres", 1000, m=1)
    add("centimetre centimetres", Fraction(1, 100), m=1)
    add("millimetre millimetres", Fraction(1, 1000), m=1)
    add_si("g", "gram", Fraction(1, 1000), "numkM", kg=1)
    add_si("s", "second", 1, "num", s=1)
    add("sec secs", 1, s=1)
    add_si("L", "liter", Fraction(1, 1000), "mcdk", m=3)
    add("l litre litres", Fraction(1, 1000), m=3)
    add("ml", Fraction(1, 10**6), m=3)
    add_si("J", "joule", 1, "mkMG", kg=1, m=2, s=-2)
    add_si("N", "newton", 1, "mkM", kg=1, m=1, s=-2)
    add_si("W", "watt", 1, "mkMG", kg=1, m=2, s=-3)
    add_si("Pa", "pascal", 1, "kMG", kg=1, m=-1, s=-2)
    add_si("Hz", "hertz", 1, "kMG", s=-1)
    add_si("V", "volt", 1, "mk", V=1)
    add_si("A", "ampere", 1, "mu", A=1)
    add_si("C", "coulomb", 1, "num", A=1, s=1)
    add_si("T", "tesla", 1, "num", kg=1, A=-1, s=-2)
    add_si("F", "farad", 1, "nu", A=2, s=4, kg=-1, m=-2)
    add_si("cal", "calorie", Fraction("4.184"), "k", kg=1, m=2, s=-2)
    add("Omega Ω ohm ohms", 1, kg=1, m=2, s=-3, A=-2)
    add("Å angstrom angstroms", Fraction(1, 10**10), m=1)
    add("atm atmosphere atmospheres", 101325, kg=1, m=-1, s=-2)
    add("bar bars", 10**5, kg=1, m=-1, s=-2)
    add("kWh", 3_600_000, kg=1, m=2, s=-2)
    add("dB decibel decibels", 1, dB=1)
    add("AU au", 149_597_870_700, m=1)
    add_si("eV", "electronvolt", Fraction("1.602176634e-19"), "kMG", kg=1, m=2, s=-2)
    add("minute minutes min mins", 60, s=1)
    add("hour hours h hr hrs", 3600, s=1)
    add("day days", 86400, s=1)
    add("week weeks", 7 * 86400, s=1)
    add("month months", 1, month=1)
    add("year years yr yrs", 12, month=1)
    add("inch inches in", "0.0254", m=1)
    add("foot feet ft", "0.3048", m=1)
    add("yard yards yd yds", "0.9144", m=1)
    add("mile miles mi", "1609.344", m=1)
    add("ounce ounces oz", "0.028349523125", kg=1)
    add("pound pounds lb lbs", "0.45359237", kg=1)
    add("ton tons", 1, ton=1)
    add("hectare hectares", 10**4, m=2)
    add("acre acres", "4046.8564224", m=2)
    add("mph", Fraction("0.44704"), m=1, s=-1)
    add("kph kmph", Fraction(1000, 3600), m=1, s=-1)
    add("dollar dollars USD $ bucks", 1, usd=1)
    add("cent cents", Fraction(1, 100), usd=1)
    add("euro euros EUR", 1, eur=1)
    add("sterling GBP", 1, gbp=1)
    add("rupee rupees Rs INR", 1, inr=1)
    add("yen yuan", 1, yen=1)
    add("K kelvin kelvins", 1, K=1)
    add("rpm", 1, rpm=1)
    add("mol mole moles", 1, mol=1)
    add("celsius", 1, celsius=1)
    add("fahrenheit", 1, fahrenheit=1)
    add("degree degrees deg", 1)  # times pi/180, which is no rational: `values` multiplies it in
    add("radian radians rad rads", 1)
    add("unit units", 1)
    return table


FACTORS: Final[dict[str, Factor]] = _table()

_SINGLE_LETTERS: Final[frozenset[str]] = frozenset(name for name in FACTORS if len(name) == 1)


def is_unit(word: str, *, upright: bool) -> bool:
    r"""Whether a word names a unit.

    Args:
        word: the word as written.
        upright: it was set upright (`\mathrm{m}`, `\text{m}`); a bare single letter is a variable instead.
    """
    return word in FACTORS and (upright or word not in _SINGLE_LETTERS) and (upright or word not in ("in", "min"))


def factor(name: str) -> Factor:
    """Return the factor and the powers of base units of a unit; a counted noun is its own base unit."""
    known = FACTORS.get(name)
    return known if known is not None else (Fraction(1), {name: 1})
