"""Attempts at calls that nobody reads, and what a turn says of its calls.

A response that writes a known tool in another form has not refrained from calling:

| form | for example |
|---|---|
| JSON of another shape, or among prose | `{"tool": "book"}`, `Sure: {"name": "book", "arguments": {..}}` |
| the name with an object behind it | `book {"city": ..}`, `{"book": {"city": ..}}`, `call:book{city: ..}` |
| tags and words of no dialect that is read | `<tool><name>book</name>`, `<book city="Paris"/>`, `Action: book` |
| Python between brackets in a sentence | `I take [book(city="Paris")] now` |
| Python on a line of its own, or anywhere in a fence | `x = tools.book(city="Paris")`, `print(book(..))`, `book(` |

JSON with a name and arguments is an attempt whatever it names.

| a turn that calls something, and | for example |
|---|---|
| gives a result itself, behind the call | `<tool_output>ok</tool_output>`, `Observation: booked`, `Tool result: ..` |
| takes the call back, or says that it is none | "please ignore the call above", "do not run this:", "just an example" |

Not covered: tools without a known name in other forms; calls within a sentence, which may speak of a tool without
calling it; results told as prose ("It is booked."); other words for taking a call back.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

from adjudge.responses.trajectories.trajectory import Call
from adjudge.verifiers.agents.tools.dialects import MAX_CALLS

_KEY: Final = "(?:name|tool|tool_name|function|function_name|action)"
_ARGUMENTS: Final = "(?:arguments|parameters|args|input|action_input|tool_input)"
_SHAPED: Final = re.compile(
    rf"""\{{\s{{0,20}}["']{_KEY}["']\s{{0,9}}:\s{{0,9}}["']([^\s"'\\]{{1,200}})["']"""
    rf"""\s{{0,9}},\s{{0,20}}["']{_ARGUMENTS}["']\s{{0,9}}:"""
)
_MARKED: Final = re.compile(
    rf"""(?:["']{_KEY}["']\s{{0,20}}:\s{{0,20}}["']|<function=["']?|\bname=["']|<[\w-]{{0,20}}(?:name|tool|function|call|action)[\w-]{{0,20}}>\s{{0,9}}"""
    r"""|<(?=[\w.-]{1,200}(?:>\s{0,9}(?:<\w|\{)|\s{1,9}[\w-]{1,60}\s?=\s?["']|\s?/>)))([^\s"'`<>(){}\\/]{1,200})"""
)
_BRACED: Final = re.compile(
    r"""(?<![\w.-])([\w.-]{1,200}+)["'`*|>\]]{0,3}(?:[ ](?:with|using))?\s{0,9}[:=]?\s{0,9}"""
    r"""\{\s{0,9}(?:\}|["']?[\w-]{1,60}["']?\s{0,9}:)"""
)
_WORDED: Final = re.compile(
    r"^(?:[ \t*✿]{0,20}(?:Action|Tool|Function|FUNCTION|Call)[✿*]{0,2}:[*`\s]{0,20}|>>>[ \t]{0,9})"
    r"([^\s`*(){}]{1,200})[`*]{0,3}[ \t]{0,9}(?:$|[({])",
    re.MULTILINE,
)
_LISTED_KEYS: Final = re.compile(
    rf"""^[ \t-]{{0,9}}{_KEY}[ ]?:[ \t"'`]{{0,9}}([\w.-]{{1,200}})["'`]?\s{{1,20}}{_ARGUMENTS}[ ]?:"""
    r"|^(?:/(?=\S{1,200}[ \t]{1,9}\w)|[$>]?[ \t]?(?=\S{1,200}[ \t]{1,9}(?:--\w|\w{1,60}=[\"'\w])))([\w.-]{1,200})",
    re.MULTILINE,
)
_LINE: Final = re.compile(
    r"^(?:[ \t`@\[({>*_\u200b\ufeff-]|<[\w|]{1,40}>|\d{1,2}[.)] ){0,20}"
    r"(?:\[?(?:[Tt]ool|[Ff]unction|TOOL|FUNCTION)[ _]?(?:[Cc]all|CALL)?\]?:? )?"
    r"(?:(?:await |return |[Cc]all(?:ing)?:? |CALL:? |print\("
    r"|(?:const |let |var )?[^\W\d]\w{0,60} ?= ?)[ \t]{0,4}){0,2}"
    r"([^\W\d][\w.]{0,200})\((.*)$",
    re.MULTILINE,
)
_FENCE: Final = re.compile(r"^[ \t>]{0,9}```[^`\n]{0,40}\n(.*?)(?:^[ \t>]{0,9}```|\Z)", re.MULTILINE | re.DOTALL)
_IN_CODE: Final = re.compile(r"(?<![\w.])(?<!def )([^\W\d][\w.]{0,200})\((?=([^()\n]*))")
_LISTED: Final = re.compile(r"\[[ \t]{0,9}([^\W\d][\w.]{0,200})\(([^\]\n]*)")
_TAG: Final = re.compile(r"</?[\w|]{1,40}>")
_SIGN: Final = re.compile(r"""[()]|\\.|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""")
_NEXT: Final = re.compile(r"\s{0,20}[,;]?\s{0,20}[\w.]{1,200}\(")
_REMARK: Final = re.compile(r"[);\s]{0,9}(?:#|//)")
_VALUE: Final = re.compile(r"""[="'\d]""")  # a list of tools names parameters, `book(city, nights)`, and has no value


def attempted_calls(text: str, offset: int, names: Container[str]) -> list[Call]:
    """Return the attempts to call the tools named, in a text outside thoughts that begins at `offset`.

    They are calls with a `fault`, in no order, at most eight times `MAX_CALLS` + 1, and their arguments how they begin;
    "" for a name alone, as in "Action: book".
    """
    attempts: list[Call] = []
    for pattern in (_SHAPED, _MARKED, _BRACED, _WORDED, _LISTED_KEYS, _LINE, _LISTED, _IN_CODE):
        marks = (mark for mark in _marks(pattern, text) if pattern is _SHAPED or _tool(mark, names))
        if pattern in (_LINE, _LISTED):
            marks = (mark for mark in marks if _stands_alone(mark[2]))
        if pattern is _IN_CODE:
            marks = (mark for mark in marks if _VALUE.search(mark[2]))
        attempts += [
            Call(
                name=_tool(mark, names) or mark[1],
                arguments="" if pattern is _WORDED and not mark[0].endswith(("(", "{")) else mark[0],
                start=offset + mark.start(),
                end=offset + mark.end(),
                fault="it is not written as a call",
            )
            for mark in itertools.islice(marks, MAX_CALLS + 1)
        ]
    return attempts


def _marks(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    if pattern is not _IN_CODE:
        return pattern.finditer(text)
    fences = _FENCE.finditer(text) if "```" in text else ()
    return itertools.chain.from_iterable(pattern.finditer(text, *fence.span(1)) for fence in fences)


def _tool(mark: re.Match[str], names: Container[str]) -> str:
    """Return the tool that is named, or that a name such as `tools.book` ends in; "" for none."""
    name: str = mark[1] or mark[2]
    return next((one for one in (name, name.rpartition(".")[2]) if one in names), "")


def _stands_alone(rest: str) -> bool:
    """Return whether a line behind `name(` is the rest of a call, with values, and nothing more but other calls."""
    depth, closing = 1, len(rest)
    for sign in _SIGN.finditer(rest):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if not depth:
            closing = sign.start()
            break
    inside, behind = rest[:closing], rest[closing + 1 :]
    if inside.strip() and not _VALUE.search(inside):
        return False
    return bool(_NEXT.match(behind) or _REMARK.match(behind)) or not re.search(r"\w", _TAG.sub("", behind))


_TOOL: Final = r"(?:tool|function|api|call|action|plugin|command|execution|code)"
_RESULT: Final = r"(?:result|output|observation)s?"
_MADE_UP: Final = re.compile(
    rf"""<[|｜]?(?:[\w▁-]{{0,40}}[_▁-])?{_RESULT}(?:[_▁-]\w{{1,20}})?[|｜]?(?:\s[^<>]{{0,100}})?>
    |<[|｜]?{_TOOL}[\w▁]{{0,20}}[_▁-]?(?:results?|outputs?|responses?|returns?|observations?)[\w▁|｜]{{0,20}}(?:\s[^<>]{{0,100}})?>
    |<information>
    |\[(?:/?TOOL_)?(?:RESULTS?|OUTPUTS?|OBSERVATIONS?)\]
    |<\|(?:im_start|start_header_id|start|role)\|>\s{{0,3}}(?:tool|ipython|function|user|observation)
    |<\|(?:ipython|tool|user)\|>
    |^(?:```|\#{{1,6}}[ ])(?:\w{{1,20}}[_ ])?(?:{_RESULT}|response)[ ]*$
    |^(?:[=-]>)?[ ]*\{{[ ]?["'](?:status|success|ok|results?|error|output|message|data|response|\w{{0,20}}_?id)["'][ ]?:
    |^(?:user|human|system):[ ]
    |^[\s>*#_`-]{{0,9}}+(?:The[ ])?
     (?:{_TOOL}[\w-]{{0,20}}[ _-](?:call[ _-])?(?:{_RESULT}|responses?|returned|returns?)|{_RESULT}
     |responses?(?=[ ](?:from|of)[ ])|[\w.`-]{{1,60}}[ ](?:returned|returns|responded|replied))
     (?:[ ](?:from|of|for)[ ][^:\n]{{1,40}})?[*_`]{{0,3}}[ ]?(?:[:=]|->)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)

_NOT: Final = r"(?:(?:do|must|should|will|would)[ ]not|(?:do|wo|would)n['’]t|never|not[ ]going[ ]to)"
_THE_CALL: Final = (
    r"(?:the|this|that|these|those|my|any|both|all)[ ](?:[\w-]+[ ]){0,2}?"
    r"(?:(?:tool|function)[ _-]?calls?|calls?(?![ ](?:with|from|to)\b)|invocations?)\b"
)
_IT: Final = r"(?:it|this|that|these|those|them|the[ ]above|everything[ ]above)(?=[ ]*(?:[.!,;:\n]|\Z|above\b|below\b))"
_TAKEN_BACK: Final = re.compile(
    rf"""\b(ignore|disregard|discard|retract|withdraw|cancel|scrap|scratch|undo|skip|forget|never[ ]?mind)
     [ ]{_THE_CALL}
    |\b(ignore|disregard|scratch|retract)[ ]{_IT}
    |\b{_NOT}[ ](?:actually[ ]|really[ ])?(?:make|send|perform|submit|issue|place)[ ]{_THE_CALL}
    |\b{_NOT}[ ](?:actually[ ]|really[ ])?(?:run|execute|invoke|process|dispatch)[ ](?:{_THE_CALL}|{_IT})
    |\bcalls?[ ](?:is[ ]|was[ ]|has[ ]been[ ])?(cancel(?=l?ed)|withdrawn|retract(?=ed)|hypothetical|void)(?:l?ed)?\b
    |\bnot[ ](?:really|actually)[ ]call(?:ing)?\b
    |\bhow[ ](?:an?|the|such[ ]an?|this|that)[ ](?:[\w-]+[ ])?call[ ]would[ ]look
    |\b(?:this|that|it|above|below|call)(?:[ ](?:is|was)|['’]s)[ ](?:just|only|merely)[ ]an?[ ]
     (?:example|illustration|demonstration|hypothetical)\b(?![ ]of[ ](?:why|what)\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def makes_up_results(text: str) -> bool:
    """Return whether a text that stands behind a call gives a result of it; a mark alone gives none."""
    mark = _MADE_UP.search(text)
    return mark is not None and bool(text[mark.end() :].strip(" \t\r\n*_`"))


def takes_back(text: str, calls: Iterable[Call]) -> bool:
    """Return whether a text beside calls says that they are not to be made.

    What the calls themselves do is said of their task: "I'll cancel the call" beside `cancel_call`.
    """
    done = "\n".join(f"{call.name} {call.arguments}" for call in calls).lower()
    marks = ((mark[1] or mark[2] or mark[3] or "").lower() for mark in _TAKEN_BACK.finditer(text))
    return any(not verb or verb not in done for verb in marks)
