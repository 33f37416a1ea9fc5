"""The stages by class name: `realmctl.stages`. This file imports nothing, so that it imports fast."""
