"""A resources server of NeMo Gym whose rewards come from adjudge; its config is `math_adjudge.yaml`."""

from __future__ import annotations

from adjudge.nemo_gym import resources_server

if __name__ == "__main__":
    resources_server().run_webserver()
