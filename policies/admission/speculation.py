"""DEC-SRVMOD-01 in CEL: what drafts has a schedule whose last entry drafts nothing, from a batch that is small enough.

JSON can't be parsed here, so only the form that the program writes is taken: the schedule once, last in the value,
without blanks or escapes, its ranges one after the other from 1. Anything else is denied, also where `srvmod check`
would see that it is in order.
"""

from __future__ import annotations

from srvmod.capacity.speculation import draft_bound
from srvmod.contract import Clause
from srvmod.policies.admission.engines import engine
from srvmod.policies.admission.policy import Validation, text
from srvmod.policies.rules.memory import NO_DRAFTS
from srvmod.policies.rules.speculation import SCHEDULE

OFF = str(list(NO_DRAFTS))
RANGE = r"\[[0-9]{1,6},[0-9]{1,6}"
END = r"\[[0-9]{1,6},[0-9]{1,6},0\]\]\}$"
WHOLE = rf'^\{{[^\\\[ ]*"{SCHEDULE}":\[(\[[0-9]{{1,6}},[0-9]{{1,6}},[0-9]\],)*{END}'


def validations() -> list[Validation]:
    """The bound on speculative decoding."""
    value, most = "variables.speculation", draft_bound()
    fix = f'"{SCHEDULE}":[[1,{most},1],[{most + 1},<max_num_seqs>,0]]}} as the last of --speculative-config'
    alone = "variables.given.exists(g, g.name in ['--spec-method', '--spec-model', '--spec-tokens'])"
    parts = "variables.given.exists(g, g.name.startsWith('--speculative-config.') || g.name.startsWith('-sc.'))"
    last = f"{value}.find({text(END)}).find('[0-9]+')"
    ranges = f"{value}.findAll({text(RANGE)}).map(r, r.substring(1).split(','))"
    in_order = (
        f"{ranges}.all(r, int(r[0]) <= int(r[1])) && int({ranges}[0][0]) == 1 && lists.range({ranges}.size() - 1)"
        f".all(i, int({ranges}[i + 1][0]) == int({ranges}[i][1]) + 1)"
    )
    return [
        engine(
            Clause.DEC_SRVMOD_01,
            "drafts",
            f"!{parts} && ({value} in {OFF} ? !{alone} : {value}.matches({text(WHOLE)}) && "
            f"{value}.split({text(chr(34) + SCHEDULE + chr(34))}).size() == 2 && {in_order} && "
            f"int({last}) <= {most + 1})",
            f"drafts in batches of more than {most} sequences, or its schedule can't be read here",
            fix,
        )
    ]
