"""Text to trees: shapes that matter, limits, and that any text gives a tree or `NotMathError`, soon."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjudge.verifiers.math.lexer import MAX_TOKENS, plain, tokenize
from adjudge.verifiers.math.nodes import (
    Collection,
    Constant,
    Matrix,
    Node,
    NotMathError,
    Number,
    Operation,
    Relation,
    Symbol,
    Unit,
    Words,
    children,
    rebuild,
    walk,
)
from adjudge.verifiers.math.numerals import MAX_DIGITS, decimal_comma, numeral, rational
from adjudge.verifiers.math.parser import MAX_DEPTH, parse
from adjudge.verifiers.math.values import exact

Shape: TypeAlias = str

GENEROUS_SECONDS = 3.0  # per text of 4,000 characters; about 0.05 s on an idle machine
FUZZED = settings(deadline=None, max_examples=150, derandomize=True)


def shape(node: Node) -> Shape:
    """Return a tree in a short prefix form."""
    if isinstance(node, Number):
        return str(node.value)
    if isinstance(node, Symbol | Constant | Unit):
        return ("#" if isinstance(node, Unit) else "") + node.name
    if isinstance(node, Words):
        return repr(node.text)
    parts = " ".join(shape(part) for part in children(node))
    if isinstance(node, Operation):
        return f"({node.name} {parts})"
    if isinstance(node, Relation):
        return f"[{' '.join(node.operators)}: {parts}]"
    if isinstance(node, Matrix):
        rows = "; ".join(" ".join(shape(entry) for entry in row) for row in node.rows)
        return f"{'cases' if node.cases else 'matrix'}({rows})"
    assert isinstance(node, Collection)
    return f"{node.kind}{node.brackets}<{parts}>"


SHAPES = [
    # numbers
    ("1,234", "1234"),
    (r"1{,}234{,}567", "1234567"),
    (r"12\,345", "12345"),
    ("12,34", "list<12 34>"),
    ("(1,234)", "bracket()<1 234>"),
    ("0,123", "list<0 123>"),
    (r"0.1\overline{6}", "1/6"),
    ("0.(3)", "1/3"),
    ("2.5e-3", "1/400"),
    (r"\frac12", "(div 1 2)"),
    (r"\dfrac{1}{2}", "(div 1 2)"),
    (r"\frac1{23}", "(div 1 23)"),
    (r"6\frac23", "(add 6 (div 2 3))"),
    ("6 2/3", "(add 6 (div 2 3))"),
    (r"2\frac{3}{2}", "(mul 2 (div 3 2))"),
    ("½", "(div 1 2)"),
    # operators
    ("a-b-c", "(add a (neg b) (neg c))"),
    ("-2^2", "(neg (pow 2 2))"),
    ("--2", "2"),
    ("2^3^2", "(pow 2 (pow 3 2))"),
    ("x^ab", "(mul (pow x a) b)"),
    ("x^{-1}", "(pow x -1)"),
    ("x²", "(pow x 2)"),
    ("1/2x", "(mul (div 1 2) x)"),
    ("a/b/c", "(div (div a b) c)"),
    (r"3\cdot 4 \times 5", "(mul 3 4 5)"),
    ("2(x+1)", "(mul 2 (add x 1))"),
    ("5!!", "(double_factorial 5)"),
    ("5!", "(factorial 5)"),
    (r"50\%", "(percent 50)"),
    (r"90^\circ", "(degree 90)"),
    ("5C2", "(binomial 5 2)"),
    ("3:4:5", "(ratio 3 4 5)"),
    (r"5 \pm \sqrt 3", "(pm 5 (root 3 2))"),
    (r"-\pm 3", "(mp 0 3)"),
    # functions
    (r"\sin 2x \cos x", "(mul (sin (mul 2 x)) (cos x))"),
    (r"\sin^{2} x", "(pow (sin x) 2)"),
    (r"\sin^{-1} x", "(arcsin x)"),
    (r"\sin(x)^2", "(pow (sin x) 2)"),
    (r"\log_2 8", "(log 8 2)"),
    (r"\sqrt[3]{x}", "(root x 3)"),
    ("f(x)", "(call f x)"),
    ("x(x+1)", "(mul x (add x 1))"),
    ("|x-1|", "(abs (add x -1))"),
    ("2|x|y", "(mul 2 (abs x) y)"),
    (r"\lfloor 2.5 \rfloor", "(floor 5/2)"),
    (r"\binom{5}{2}", "(binomial 5 2)"),
    # names
    ("x_1", "x_1"),
    ("x_{12}", "x_12"),
    ("y'", "y'"),
    ("xy", "(mul x y)"),
    ("2πr", "(mul 2 pi r)"),
    (r"\alpha\beta", "(mul alpha beta)"),
    ("X", "X"),
    (r"\mathrm{e}", "e"),
    (r"5\text{ cm}", "(mul 5 #cm)"),
    (r"5\mathrm{~m}^2", "(mul 5 (pow #m 2))"),
    ("5m", "(mul 5 m)"),
    ("15 min", "(mul 15 #min)"),
    (r"15\min(2,3)", "(mul 15 (min 2 3))"),
    ("2 sec x", "(mul 2 (sec x))"),
    ("3 lb", "(mul 3 #lb)"),
    ("70 miles per hour", "(div (mul 70 #miles) #hour)"),
    ("5 per cent", "(percent 5)"),
    ("2 hr 5 min 30 s", "(add (mul 2 #hr) (mul 5 #min) (mul 30 #s))"),
    (r"1\text{ hour and }15\text{ minutes}", "(add (mul 1 #hour) (mul 15 #minutes))"),
    ("15 min and 1 hr", "listand<(mul 15 #min) (mul 1 #hr)>"),
    (r"3^\circ 15' 18''", "(degree (add 3 (div 15 60) (div 18 3600)))"),
    (r"\$5", "(mul 5 #$)"),
    # structures
    ("[0,1)", "bracket[)<0 1>"),
    (r"\{1,2\}", "set<1 2>"),
    (r"\{5\}", "set<5>"),
    (r"\{\}", "empty"),
    ("1, 2 and 3", "listand<1 2 3>"),
    (r"x=1 \text{ or } x=2", "listor<[=: x 1] [=: x 2]>"),
    ("p=5, q=2; p=7, q=2", "list<list<[=: p 5] [=: q 2]> list<[=: p 7] [=: q 2]>>"),
    (r"[0,1)\cup(2,3]", "union<bracket[)<0 1> bracket(]<2 3>>"),
    (r"0 < x \le 1", "[< <=: 0 x 1]"),
    ("x >= 2", "[>=: x 2]"),
    (r"x\in\mathbb{R}", "[in: x R]"),
    (r"\mathbb{R}\setminus\{1\}", "(setminus R set<1>)"),
    (r"\{x \mid x > 2\}", "(such_that x [>: x 2])"),
    (r"\langle 1,2 \rangle", "bracket<><1 2>"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "matrix(1 2; 3 4)"),
    (r"2\begin{pmatrix}a\\b\end{pmatrix}", "matrix((mul 2 a); (mul 2 b))"),
    (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "(add (mul 1 4) (neg (mul 2 3)))"),
    (r"\begin{cases}x=1\\y=2\end{cases}", "cases([=: x 1]; [=: y 2])"),
    (r"(-\infty, 5]", "bracket(]<(neg oo) 5>"),
    # layout
    (r"\left( 1, 2 \right)", "bracket()<1 2>"),
    (r"\displaystyle\frac{1}{2}", "(div 1 2)"),
    (r"\boxed{5}", "5"),
    ("x − 1", "(add x -1)"),
]


@pytest.mark.parametrize(("text", "expected"), SHAPES, ids=[text for text, _ in SHAPES])
def test_shape(text: str, expected: Shape) -> None:
    assert shape(parse(text)) == expected


UNREAD = [
    "", "   ", r"\def\x{5}", r"\frac{1}", r"\frac", "1 2", "(1", "1)", "[1)", "{", "}", "^2", "5^", "x_", "3 +", "+",
    r"\begin{pmatrix}1&2", r"\begin{tikzpicture}\end{tikzpicture}", r"\unknowncommand{5}", "half of them", "5 tens",
    "1.2.3", r"\begin{pmatrix}1&2\end{pmatrix}+\begin{pmatrix}1\end{pmatrix}", "5@6", "<1>", r"\sqrt", "1/", "||", "=",
    r"5\text{ cm }3\text{ kg}", "1 hr 90 min", "5 in 3 ft", r"5\text{ m }3", "5 grand", "5 couples",
    r"5\text{ish}", r"5\text{K}", r"3\$5",
]  # fmt: skip


@pytest.mark.parametrize("text", UNREAD)
def test_unread(text: str) -> None:
    with pytest.raises(NotMathError):
        parse(text)


@pytest.mark.parametrize(
    ("opener", "closer"), [("(", ")"), ("{", "}"), (r"\frac{", "}{2}"), (r"\sqrt{", "}"), ("|(", ")|"), ("2^{", "}")]
)
def test_nesting_is_limited(opener: str, closer: str) -> None:
    assert parse(opener * 8 + "1" + closer * 8)
    with pytest.raises(NotMathError):
        parse(opener * (MAX_DEPTH + 5) + "1" + closer * (MAX_DEPTH + 5))


@pytest.mark.parametrize("piece", ["{}", "€", r"\det", r"\sqrt", "-", "2^", "(", r"\euro ", r"\{", "|", r"\sin", "1/"])
def test_long_runs_of_one_piece_end_in_our_error(piece: str) -> None:
    with pytest.raises(NotMathError):
        parse(piece * (4000 // len(piece)))


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, r"\frac" * 50_000, "1/" * 50_000 + "1", "x^" * 2000 + "x", "-" * 9000 + "1"],
    ids=["brackets", "fractions", "quotients", "powers", "signs"],
)
def test_what_is_too_deep_or_too_long_is_refused_at_once(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(NotMathError):
        parse(text)
    assert time.perf_counter() - start < GENEROUS_SECONDS


def test_tokens_are_limited() -> None:
    assert len(tokenize("x+" * 1999)) == 3999
    with pytest.raises(NotMathError, match=str(MAX_TOKENS)):
        tokenize("x+" * MAX_TOKENS)


def test_matrix_products_stay_small() -> None:
    text = r"\begin{pmatrix}1&1\\1&1\end{pmatrix}" * 17
    try:
        tree = parse(text)
    except NotMathError:
        return
    assert sum(1 for _ in walk(tree)) < 100_000


WRITTEN = r"""
\frac \sqrt \left( \right) \{ \} { } ( ) [ ] | < > = ^ _ , ; . : ! % ' " ~ - + * / & \\ $ \pm \text{ \mathrm{
\begin{pmatrix} \end{pmatrix} \begin{cases} \end{cases} \cup \in \le \infty \mathbb{R} \lfloor \rfloor \langle
\rangle \sum \int \lim \sin \log ln \circ \degree \det \binom \hspace{ \overline{ \overline{3} 0. 1 2 10 12,345 1e9
.5 x y z e i pi f( P cm apples and or not million ² √ π ½ ፩ ٣ € ∞ ° − 一 é \quad \, \! \boxed{ \vec{ \angle
4.5 y_1 ½ 和 \text{and}
""".split()
PIECES = st.sampled_from([*WRITTEN, " ", "\x00", "\ud800"])
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.lists(PIECES).map(" ".join))


@FUZZED
@example("5_፩")
@example("\\")
@example("x^{")
@example(r"\overline{}")
@example("{}")
@example("\ud800")
@given(TEXTS)
def test_any_text_gives_a_tree_or_our_error(text: str) -> None:
    start = time.perf_counter()
    try:
        tree = parse(text)
    except NotMathError:
        tree = Words("")
    assert time.perf_counter() - start < GENEROUS_SECONDS
    assert rebuild(tree, children(tree)) == tree


@FUZZED
@given(st.text(max_size=60))
def test_plain_changes_only_what_is_not_ascii(text: str) -> None:
    assert plain(text) == text or not text.isascii()
    assert tokenize("5")[-1].kind == "end"


NUMERALS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{1,6})?", fullmatch=True),
    st.integers(-(10**12), 10**12).map(str),
    st.from_regex(r"[+-]?(0|[1-9][0-9]{0,5})(\.[0-9]{0,6})?\.?", fullmatch=True),
    st.from_regex(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3}){1,3}(\.[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?[1-9][0-9]{0,2}( [0-9]{3}){1,2}", fullmatch=True),
    st.from_regex(r"-?\\[dt]?frac\{-?[0-9]{1,4}\}\{[1-9][0-9]{0,3}\}", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,4}/[0-9]{1,4}\.?", fullmatch=True),
    st.from_regex(r"-?\.[0-9]{1,8}", fullmatch=True),
)


@FUZZED
@given(NUMERALS)
def test_the_fast_path_agrees_with_the_parser(text: str) -> None:
    fast = rational(text)
    if fast is None:
        return
    tree = parse(text)
    assert exact(tree) == fast.value
    if isinstance(tree, Number):
        assert (tree.places, tree.digits) == (fast.places, fast.digits)


@FUZZED
@given(st.text(alphabet=r"0123456789.,/-+ e\frac{}", max_size=14))
def test_the_fast_path_agrees_on_whatever_it_accepts(text: str) -> None:
    fast = rational(text)
    assert fast is None or exact(parse(text)) == fast.value


@pytest.mark.parametrize(
    "text", ["1/0", r"\frac{1}{0}", "1e5", "2 3", "1,23", "x", "", "--5", "1.5/2", "9" * 301, "5\n"]
)
def test_the_fast_path_declines(text: str) -> None:
    assert rational(text) is None


@pytest.mark.parametrize(
    ("text", "value", "places", "digits"),
    [
        ("12", Fraction(12), -1, 0),
        ("1.50", Fraction(3, 2), 2, 3),
        ("0.001", Fraction(1, 1000), 3, 1),
        ("2e-3", Fraction(1, 500), 3, 1),
        ("1.5e3", Fraction(1500), 0, 2),
        ("0.1r6", Fraction(1, 6), -1, 0),
        (".5", Fraction(1, 2), 1, 1),
    ],
)
def test_numeral(text: str, value: Fraction, places: int, digits: int) -> None:
    assert numeral(text) == Number(value, places, digits)


@pytest.mark.parametrize("text", ["9" * (MAX_DIGITS + 1), "1e2001", "1e-2001", "1e" + "9" * 50])
def test_numerals_are_limited(text: str) -> None:
    with pytest.raises(NotMathError):
        numeral(text)


def test_decimal_commas() -> None:
    assert decimal_comma("2,74") == Number(Fraction(274, 100), 2, 3)
    assert decimal_comma("-0,125") == Number(Fraction(-1, 8), 3, 3)
    assert [decimal_comma(text) for text in ("1,5", "1,234", "1,2,3", "a,bc", ",50")] == [None] * 5
