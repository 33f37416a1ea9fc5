"""How work runs: functions mapped over units, the processes of torchrun, signals."""
