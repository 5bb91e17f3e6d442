"""What a turn says of its calls: results that the assistant made up for them, and that they are not meant.

| a turn that calls something, and | for example |
|---|---|
| gives a result itself, behind the call | `<tool_output>ok</tool_output>`, `Observation: booked`, `Tool result: ..` |
| takes the call back, or says that it is none | "please ignore the call above", "do not run this:", "just an example" |

Not covered: results told as prose ("It is booked."), and other words for taking a call back.
"""

from __future__ import annotations

import re
from typing import Final

_TOOL: Final = r"(?:tool|function|api|call|action|plugin|command|execution|code)"
_RESULT: Final = r"(?:result|output|observation)s?"
_MADE_UP: Final = re.compile(
    rf"""<[|｜]?(?:[\w▁-]{{0,40}}[_▁-])?{_RESULT}(?:[_▁-]\w{{1,20}})?[|｜]?(?:\s[^<>]{{0,100}})?>
    |<[|｜]?{_TOOL}[\w▁]{{0,20}}[_▁-]?(?:results?|outputs?|responses?|returns?|observations?)[\w▁|｜]{{0,20}}(?:\s[^<>]{{0,100}})?>
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
    rf"""\b(?:ignore|disregard|discard|retract|withdraw|cancel|scrap|scratch|undo|skip|forget|never[ ]?mind)
     [ ]{_THE_CALL}
    |\b(?:ignore|disregard|scratch|retract)[ ]{_IT}
    |\b{_NOT}[ ](?:actually[ ]|really[ ])?(?:make|send|perform|submit|issue|place)[ ]{_THE_CALL}
    |\b{_NOT}[ ](?:actually[ ]|really[ ])?(?:run|execute|invoke|process|dispatch)[ ](?:{_THE_CALL}|{_IT})
    |\bcalls?[ ](?:is[ ]|was[ ]|has[ ]been[ ])?(?:cancell?ed|withdrawn|retracted|hypothetical|void)\b
    |\bnot[ ](?:really|actually)[ ]call(?:ing)?\b
    |\bhow[ ](?:an?|the|such[ ]an?|this|that)[ ](?:[\w-]+[ ])?call[ ]would[ ]look
    |\b(?:this|that|it|above|below|call)(?:[ ](?:is|was)|['’]s)[ ](?:just|only|merely)[ ]an?[ ]
     (?:example|illustration|demonstration|hypothetical)\b""",
    re.IGNORECASE | re.VERBOSE,
)


def makes_up_results(text: str) -> bool:
    """Return whether a text that stands behind a call gives a result of it."""
    return bool(_MADE_UP.search(text))


def takes_back(text: str) -> bool:
    """Return whether a text beside calls says that they are not to be made."""
    return bool(_TAKEN_BACK.search(text))
