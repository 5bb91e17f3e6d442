"""Units of measurement as factors of base units, for comparing `50 mm` with `5 cm`.

Values are the exact ones of the SI brochure (9th edition, 2019) and of the international yard and pound
agreement (1959).  A base unit is its own symbol, so that unlike units never compare equal.  Nouns that are
counted ("apples") are base units of their own.  Not covered: temperatures, whose scales differ by an offset
(each scale is its own base unit), and currencies against each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from adjudge.responses.number_text import THOUSAND
from adjudge.verifiers.math.nodes import Node, NotMathError, Number, Operation, Symbol, Unit, is_op

_SI_PREFIX: Final[dict[str, int]] = {"n": -9, "u": -6, "m": -3, "c": -2, "d": -1, "k": 3, "M": 6, "G": 9}
_LONG_PREFIX: Final[dict[str, int]] = {
    "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "kilo": 3, "mega": 6, "giga": 9,
}  # fmt: skip

DEGREES: Final = ("degree", "degrees", "deg")
MAX_COUNTER: Final = 4  # letters of what is counted, in scripts without spaces

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
    add_si("Omega", "ohm", 1, "mkM", kg=1, m=2, s=-3, A=-2)
    add("Å angstrom angstroms", Fraction(1, 10**10), m=1)
    add("atm atmosphere atmospheres", 101325, kg=1, m=-1, s=-2)
    add("bar bars", 10**5, kg=1, m=-1, s=-2)
    add("kWh", 3_600_000, kg=1, m=2, s=-2)
    add("dB decibel decibels", 1, dB=1)
    add("AU au", 149_597_870_700, m=1)
    add_si("pc", "parsec", 1, "kMG", pc=1)
    add("mpg", "1609.344", gallon=-1, m=1)
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
    add("¥", 1, yen_or_yuan=1)
    add("yen JPY", 1, yen=1)
    add("yuan RMB CNY", 1, cny=1)
    add("K kelvin kelvins", 1, K=1)
    add("mol mole moles", 1, mol=1)
    add("celsius", 1, celsius=1)
    add("fahrenheit", 1, fahrenheit=1)
    add("degree degrees deg", 1)  # times pi/180, which is not a rational: `values` multiplies it in
    add("radian radians rad rads", 1)
    add("unit units", 1)
    return table


_SPELLINGS: Final[dict[str, str]] = {  # in scripts without which many answers are not read
    "Omega": "Ω",
    "m": "米 м метр метра метров 미터 メートル", "cm": "厘米 公分 см сантиметр сантиметра сантиметров 센티미터",
    "km": "千米 公里 км километр километра километров 킬로미터", "mm": "毫米 мм миллиметров 밀리미터", "dm": "分米 дм",
    "g": "克 г грамм грамма граммов 그램 グラム", "kg": "千克 公斤 кг килограмм килограмма килограммов 킬로그램",
    "mg": "毫克 мг", "L": "升 л литр литра литров 리터 リットル", "mL": "毫升 мл 밀리리터",
    "hour": "小时 小時 时 钟头 時間 시간 ч час часа часов", "minute": "分钟 分鐘 мин минута минуты минут",
    "second": "秒 秒钟 초 сек секунда секунды секунд", "day": "天 日 일 день дня дней",
    "week": "周 星期 週間 주 неделя недели недель", "month": "个月 個月 か月 ヶ月 개월 месяц месяца месяцев",
    "year": "年 년 год года лет", "kW": "千瓦 кВт", "kWh": "千瓦时", "kcal": "千卡 大卡 ккал", "hectare": "公顷 га",
    "dollar": "美元 달러 ドル доллар доллара долларов", "euro": "欧元 歐元 유로 ユーロ евро", "sterling": "英镑",
    "yen": "円 日元 엔", "yuan": "元 위안 юань юаня юаней",
}  # fmt: skip
_OTHERS: Final[dict[str, Factor]] = {
    name: (Fraction(scale), {base: power})
    for names, scale, base, power in (
        ("平方米", 1, "m", 2), ("平方分米", "0.01", "m", 2), ("平方厘米", "0.0001", "m", 2),
        ("平方千米 平方公里", 10**6, "m", 2),
        ("立方米", 1, "m", 3), ("立方分米", "0.001", "m", 3), ("立方厘米", "0.000001", "m", 3), ("角", "0.1", "cny", 1),
        ("吨 噸 톤 т тонна тонны тонн", 1000, "kg", 1), ("руб рубль рубля рублей", 1, "rub", 1),
        ("gallon gallons gal", 1, "gallon", 1),  # American or British, but four quarts either way
        ("quart quarts qt", "0.25", "gallon", 1), ("pint pints pt", "0.125", "gallon", 1),
        ("ly lightyear lightyears light-year light-years", 1, "ly", 1), ("hp horsepower", 1, "hp", 1),
        ("Msun", 1, "Msun", 1), ("Lsun", 1, "Lsun", 1), ("Rsun", 1, "Rsun", 1), ("torr mmHg", 1, "torr", 1),
        ("arcsec arcsecs arcsecond arcseconds", 1, "arcsec", 1), ("psi", 1, "psi", 1), ("rpm", 1, "rpm", 1),
        ("''", 1, "double prime", 1),  # inches, or seconds of an arc
        ("kms", 1000, "m", 1), ("cms", "0.01", "m", 1), ("kgs", 1, "kg", 1), ("pence", "0.01", "gbp", 1),
        ("fen", "0.01", "cny", 1), ("分 분", 1, "分", 1),
        ("коп копейка копейки копеек", "0.01", "rub", 1), ("원", 1, "krw", 1),
    )
    for name in names.split()
}  # fmt: skip


def _spelled(table: dict[str, Factor]) -> dict[str, Factor]:
    return table | _OTHERS | {name: table[unit] for unit, names in _SPELLINGS.items() for name in names.split()}


FACTORS: Final[dict[str, Factor]] = _spelled(_table())

MEANINGS: Final[dict[str, dict[str, str]]] = {
    "¥": {"yen": "yen", "cny": "yuan"}, "分": {"s": "minute", "cny": "fen"}, "분": {"s": "minute"},
    "''": {"m": "inch", "arcsec": "arcsec"}, "pound": {"gbp": "sterling"}, "pounds": {"gbp": "sterling"},
}  # fmt: skip
"""Names of several units: the one meant beside a unit of this base."""

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


_PIECE = re.compile(r"([^\W\d]+|\$)\s*(?:\^?\s*\{?(-?\d)\}?)?")
POWERS: Final = {"square": 2, "sq": 2, "sq.": 2, "cubic": 3, "cu": 3, "cu.": 3}
_MEASURED = re.compile(  # what is measured does not bear on the unit: `grams of sugar`, `years old`
    r"(.*?)\s+(?:(?:of|in|from|for)\s.+|old|older|tall|long|high|wide|deep|away|apart|ago|left|more|total|altogether|each)",
    re.IGNORECASE,
)


NOT_NOUNS = frozenset(
    "is are was were be been not no never neither nor cannot can wrong incorrect false untrue maybe perhaps possibly "
    "either or and but if then than else unless except until about approximately roughly around between might could "
    "should would will what which who why how because since therefore thus hence so to from with without plus minus "
    "for some where when не нет ни или и минус плюс раз раза или 或 和 以及 неверно неправильно больше меньше".split()
)


SCALES: Final[dict[str, tuple[int, int]]] = {
    "hundred": (10, 2), "thousand": (10, 3), "million": (10, 6), "billion": (10, 9), "trillion": (10, 12),
    "lakh": (10, 5), "lakhs": (10, 5), "crore": (10, 7), "crores": (10, 7), "dozen": (12, 1), "gross": (12, 2),
    "score": (20, 1), "万": (10, 4), "亿": (10, 8),
}  # fmt: skip
"""Words that multiply the number before them, as a power: `5 million` is 5 * 10^6."""

_SCALE = re.compile(
    r"\w*(?:illions?|illiards?|illionen|hundreds?|thousands?|dozens?|ths?|tuples?|folds?|akhs?|rores?"
    r"|hundert|tausend|dutzend|douzaines?|[dc]e[cn]t?e?nas?|doz[iz]\w+|dzin\w*|tuzin\w*|mil[iy]on\w*|milh(?:ão|ões|ar\w*)|mil[iy]ar\w*|mil"
    r"|mila|mille|cien(?:to)?s?|centinaia|cem|tys\w*|tis[ií]c\w*|bin|yüz|ribu|juta|ratus|elfu|ezer|tuhat\w*|tusen|duizend|honderd"
    r"|тысяч\w*|миллион\w*|миллиард\w*|сот(?:ен|ня|ни)|десят(?:ок|ков|ка)|дюжин\w*|мільйон\w*|nghìn|ngàn|triệu|trăm|tỷ|tỉ)",
    re.IGNORECASE,
)  # by their endings, which languages share and hardly a counted thing has
_SCALE_CJK = re.compile(
    rf"[万亿百十拾십兆倍半‰%萬億仟佰拾만억천백조]|{THOUSAND}|हज़?ार|हजार|लाख|करोड़|सौ|ہزار|لاکھ|کروڑ|ألف|آلاف|مليون|ملايين|مليار|مئة|مائة"
    "|พัน|หมื่น|แสน|ล้าน|ร้อย|হাজার|লক্ষ|কোটি|分之|以上|以下|次方|左右|割|ない|以外|아[니닌닙]|틀[렸린]|不"
)
_PARTICLE = re.compile("[的の의之未弱强強余餘多几数數超半成折打错錯误誤否非假]|보다|미만|이상|이하")
_NO_NOUN = re.compile(r"[\d\\α-ω]")
_CHANGING = frozenset(  # scales, shares, powers, signs, bounds, estimates: the closed classes of words about a number
    "тыс млн млрд ish tens score couple couples myriad myriads grand mil mill mils mille bn mn bil mio mrd "
    "hundredweight hundredweights cwt googol googols lac lacs kilo mega giga tera milli micro nano trio trios brace "
    "gross permille permil ppm ppb pp bps percent pct percents percentage percentages percentile percentiles basis per "
    "half halves halved third thirds quarter quarters squared cubed root factorial choose base modulo mod inverse "
    "reciprocal negative below above under over beyond at least most less more fewer twice thrice double doubled "
    "triple tripled max maximum minimum tops upward upwards onward onwards something approx approximate circa ca "
    "nearly almost estimated est exponent".split()
)


def changes_value(word: str) -> bool:
    """Whether a word next to a number makes it another number (`5 million`, `5 squared`), or says too little."""
    return word.lower() in _CHANGING or bool(_SCALE.fullmatch(word) or _SCALE_CJK.search(word))


def scale(word: str) -> Node:
    """Return what a word of `SCALES` multiplies by."""
    base, exponent = SCALES[word.lower()]
    return Operation("pow", (Number(Fraction(base)), Number(Fraction(exponent))))


def is_noun(word: str) -> bool:
    """Whether a word can be what is counted."""
    return word.lower() not in NOT_NOUNS and not changes_value(word)


def is_counter(word: str) -> bool:
    """Whether a word in another script behind a number says what is counted."""
    if word in FACTORS:
        return True
    return is_noun(word) and not (word > "\u2e80" and (len(word) > MAX_COUNTER or _PARTICLE.search(word)))


def counted(word: str) -> tuple[Node, str]:
    """Return what a word in another script says behind a number, and what is left of it: 元 of 万元.

    Raises:
        NotMathError: it is not what is counted.
    """
    if word not in FACTORS and word[0] in SCALES:
        return scale(word[0]), word[1:]
    if word in FACTORS:
        return Unit(word), ""
    if len(word) == 1 and word < "\u2e80":
        return Symbol(word), ""  # the letter х looks like an x
    if not is_counter(word) or word in "对對":  # a pair, or "correct"
        raise NotMathError(f"the word {word[:40]!r}")
    return Unit(f"?{word.lower()}"), ""


def joint(first: str, second: str) -> Node | None:
    """Return the unit that two words name: `square meters`, `degrees Celsius`; else None."""
    if first in POWERS and is_unit(second, upright=True):
        return Operation("pow", (Unit(second), Number(Fraction(POWERS[first]))))
    if first in DEGREES and second.lower() in ("celsius", "fahrenheit"):
        return Unit(second.lower())
    return None


def unit_expression(text: str) -> Node:
    """Return the product of scales and units that a text names; a text that names none is a counted noun.

    Raises:
        NotMathError: the text holds a word that no noun phrase has, such as "is" or "not".
    """
    words = text.strip(" .,()").replace(" per ", "/").replace("\\cdot", " ").replace("*", " ").replace("·", " ")
    if (measured := _MEASURED.fullmatch(words)) and _product(measured[1]) is not None:
        words = measured[1]
    node: Node | None = None
    first, _, rest = words.strip().partition(" ")
    if first.lower() in SCALES:
        return Operation("mul", (scale(first), unit_expression(rest))) if rest.strip() else scale(first)
    for index, side in enumerate(words.split("/")):
        part = _product(side)
        if part is None:
            noun = words.lower().split()
            if not noun or not all(map(is_noun, noun)) or _NO_NOUN.search(words):
                raise NotMathError(f"the text {text[:40]!r}")
            return Symbol(words) if len(words) == 1 and words.isascii() and words != "M" else Unit("?" + " ".join(noun))
        node = part if index == 0 else Operation("div", (node, part)) if node is not None else part
    assert node is not None
    return node


def _product(text: str) -> Node | None:
    node: Node | None = None
    power = 1
    for word in text.split():
        if word.lower() in POWERS:
            power = POWERS[word.lower()]
            continue
        match = _PIECE.fullmatch(word)
        if match is None or not is_unit(match[1], upright=True):
            return None
        unit: Node = Unit(match[1])
        exponent = power * int(match[2] or 1)
        if exponent != 1:
            unit = Operation("pow", (unit, Number(Fraction(exponent))))
        node = unit if node is None else Operation("mul", (node, unit))
        power = 1
    return node


def is_measure(node: Node) -> bool:
    """Whether a node is a number times one unit."""
    return (
        is_op(node, "mul")
        and len(node.args) == 2
        and isinstance(node.args[0], Number)
        and isinstance(node.args[1], Unit)
    )


def sum_of_measures(parts: Sequence[Node]) -> Node | None:
    """Return the quantity that is given in several units, or None when the parts are no such quantity.

    Every unit is smaller than the one before and less than one of it is left: `1 hr 15 min`, not `1 hr 90 min`.
    """
    if not all(map(is_measure, parts)):
        return None
    above: tuple[Fraction, dict[str, int]] | None = None
    for part in parts:
        assert isinstance(part, Operation)
        number, unit = part.args
        assert isinstance(number, Number)
        assert isinstance(unit, Unit)
        scale, powers = factor(unit.name)
        if not powers or (above is not None and (powers != above[1] or not 0 <= number.value * scale < above[0])):
            return None
        if above is not None and scale >= above[0]:
            return None
        above = (scale, powers)
    return Operation("add", tuple(parts))
