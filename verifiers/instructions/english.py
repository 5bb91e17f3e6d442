"""Lists of English words that kinds of constraints count, and what is a verb, a syllable and an emoji.

The stop words are those of NLTK (179 words; tokens without apostrophes, so "don" and "t" are in it), the names and
pronouns those that IFBench's prompts and checkers name.

Not covered: other languages; verbs that are not in the list here and have no ending of verbs.
"""

from __future__ import annotations

import re
from typing import Final

STOP_WORDS: Final = frozenset(
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself "
    "it its itself they them their theirs themselves what which who whom this that these those am is are was were be "
    "been being have has had having do does did doing a an the and but if or because as until while of at by for with "
    "about against between into through during before after above below to from up down in out on off over under "
    "again further then once here there when where why how all any both each few more most other some such no nor not "
    "only own same so than too very s t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn "
    "hasn haven isn ma mightn mustn needn shan shouldn wasn weren won wouldn".split()
)

SMALL_WORDS_ELSEWHERE: Final = frozenset(
    "das der des ein eine einen einer es ist ich nicht sind und auf aus bei mit nach oder sehr von wie wir zu zum zur "
    "für au aux avec ce dans de du elle est et il ils je la le les ne nous ou par pas que qui sont sur un une vous con "
    "del el en este hay las los lo mi muy por se su una y al com da dos em na não os um uma che di è gli non per sono "
    "att av det ett och som är på og er ikke jeg til med ja ei nie jest się że az egy nem és bir bu ve için cu nu "
    "și".split()
)
"""Small words of languages with accents; English has hardly any of them."""

CONJUNCTIONS: Final = frozenset({"and", "but", "for", "nor", "or", "so", "yet"})

PRONOUNS: Final = frozenset(
    "i me we us you he him she her it they them my mine our ours your yours his hers its their theirs myself "
    "ourselves yourself yourselves himself herself itself themselves this that these those who whom whose which what "
    "whoever whomever whatever whichever anybody anyone anything everybody everyone everything nobody nothing "
    "somebody someone something each either neither both all some any none".split()
)

NAMES: Final = tuple(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin "
    "Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria "
    "Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella "
    "Jonathan".split()
)

_VERBS: Final = frozenset(
    "accept achieve act adapt add address adjust adopt advise agree aim allow analyze answer apply appreciate "
    "approach arrange ask assess assign assist assume attach attempt attend avoid bake balance be become begin behold "
    "believe blend boil book break breathe bring build burn buy calculate call calm capture carry catch celebrate "
    "change charge chase check choose chop clean clear click climb close collect combine come compare compile "
    "complete compose conduct confirm connect consider construct contact contain continue contribute convert cook "
    "copy correct count cover create cultivate cut dance dare deal decide define delete deliver delve depend derive "
    "describe design determine develop discover discuss dissolve dive divide do draw dream drink drive drop eat edit "
    "embark embrace employ empower enable encourage end engage enhance enjoy ensure enter envision equip establish "
    "estimate evaluate examine expand expect experience explain explore express extract face fall feel fetch fight "
    "fill find finish fix fly focus fold follow forget forgive form gather gaze generate get give go grab grasp greet "
    "grow guess guide handle hang harness have hear help hide highlight hold hope identify ignite ignore illustrate "
    "imagine implement import improve include incorporate increase indulge insert install integrate introduce invent "
    "invest investigate invite involve jump keep know laugh launch lead learn leave let list listen live locate look "
    "lose love make manage mark master match measure meet mention mix monitor move multiply navigate need nest note "
    "notice observe obtain offer open optimize order organize outline overcome pack paint participate pass pay "
    "perform pick picture place plan play ponder pour practice prepare present press prevent print prioritize proceed "
    "produce promote propose protect prove provide pull push put raise reach read realize receive recall recognize "
    "recommend reduce reflect refer register relate relax release remain remember remind remove repeat replace report "
    "request require research resolve respond rest review rewrite ride rise roam run save say search see seek seem "
    "select sell send separate serve set share shift show simplify sing sit solve sort speak spend spread stand start "
    "state stay step stop store strive study submit substitute succeed suggest summarize support suppose surround "
    "survive take talk taste teach tell test thank think throw touch track train transform translate travel treat "
    "trust try turn understand unleash unlock unveil update use utilize value verify view visit visualize wait wake "
    "walk want watch weave welcome whisper win wonder work worry write yield are is was were am been has had did does "
    "can could may might must shall should will would said made went took gave found thought told became left felt "
    "brought began kept held wrote stood heard let meant met ran paid sat spoke led grew lost fell sent built "
    "understood drew broke spent cut rose drove bought wore chose".split()
)
_VERB_ENDING = re.compile(r"[a-z]{2,}(?:ing|ed|ize|ise|ify)")
_NO_VERBS: Final = frozenset(
    "during according regarding morning evening something nothing everything anything king ring spring string thing "
    "wedding building meeting feeling red bed hundred sacred indeed need seed speed sized otherwise likewise exercise "
    "paradise promise precise wise concise enterprise franchise surprise".split()
)

_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623"
    "\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e"
    "\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8"
    "\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712"
    "\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797"
    "\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f004\U0001f0cf\U0001f170\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f1e6-\U0001f1ff"
    "\U0001f201-\U0001f251\U0001f300-\U0001f6fc\U0001f7e0-\U0001f7f0\U0001f90c-\U0001f9ff\U0001fa70-\U0001faff]"
)

_VOWELS = re.compile(r"[aeiouy]+")
# Neighbouring vowels that are two syllables ("dial", "radio", "client"), and an "e" that is none ("make", "asked").
_HIATUS = re.compile(
    r"ia(?!ge)(?<![ct]ia)|io(?!n|us)|(?<=[bdlrv])ious|eo(?!us|p)|(?<![qg])ua|iet|[yeo]ing|(?<![ct])ien|idea|creat"
)
_SILENT = re.compile(r"[^aeiouyl]e\Z|[^aeiouydt]ed\Z|[^aeiouyscxzgh]es\Z|[aeiouy]le\Z|[^aeiouy]e(?:ful|ly|ment)")


_COMMON: Final = frozenset(
    "able account age alone along art back bid bout broad burst came cat claim coming cross day deed den done "
    "dream ear early east ever every fair far fast fault feat fit fore form fort forth fortune gain gap gate "
    "gather go got ground hand head high home how ill inner its itself kind king land late law lay led level "
    "lid lie lies light like line lined list little load lone long lot loud low mat men might mind mine much "
    "must name near new nine noble nor north nothing now old one onto our own part past pet pond port ready "
    "rest right ring road roar rose round row sea self set side sign site size small soon spring standing "
    "state stead step such sure take tale tar ten tend test there thing think third thus time tin to told ton "
    "too top tough town tract treat tress try turn two upon vent vest view void wake war ward wards ware way "
    "ways weight well west while wide wise wish with word work world would yet".split()
)
"""Words that make another one with a word beside them: "a part", "be long", "every day"."""


def is_common(word: str) -> bool:
    """Return whether a word is so common that it may stand beside another without being a half of one."""
    word = word.lower()
    return word in STOP_WORDS or word in _VERBS or word in _COMMON or word in PRONOUNS


def is_verb(word: str) -> bool:
    """Return whether a word is a verb in some form, at the beginning of a sentence."""
    word = word.lower()
    if word in _VERBS:
        return True
    if word in _NO_VERBS:
        return False
    stems = {word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y"}
    return bool(_VERB_ENDING.fullmatch(word)) or (word.endswith("s") and not stems.isdisjoint(_VERBS))


def is_emoji(letter: str) -> bool:
    """Return whether a character is an emoji, or half of a flag."""
    return bool(_EMOJI.fullmatch(letter))


def syllables(word: str) -> int:
    """Return how many syllables a word in small letters has by its spelling; 0 where it has no letters, or digits.

    Right for nine of ten common words; English spelling decides no more.
    """
    if not word.isalpha():
        return 0
    count = len(_VOWELS.findall(word))
    if not count:
        return 1
    count += len(_HIATUS.findall(word))
    count -= len(_SILENT.findall(word)) if count > 1 else 0
    return max(count, 1)
