# /// script
# dependencies = ["torch"]
# ///
"""register_state_dict_post_hook refuses a bound method, which its private predecessor takes."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from torch import nn

if not hasattr(nn.Module, "register_state_dict_post_hook"):
    raise SystemExit(3)


class Owner:
    def hook(self, module, state_dict, prefix, local_metadata):
        log.append("called")


def calls(register):
    log.clear()
    net = nn.Linear(1, 1)
    try:
        getattr(net, register)(Owner().hook)
    except AttributeError as error:
        return str(error)
    net.state_dict()
    return list(log)


log = []
control = calls("_register_state_dict_hook")
experiment = calls("register_state_dict_post_hook")
print("_register_state_dict_hook:    ", control)
print("register_state_dict_post_hook:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["called"] else 0 if experiment == control else 1)
