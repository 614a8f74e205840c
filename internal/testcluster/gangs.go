// SPDX-License-Identifier: Apache-2.0

package testcluster

import _ "embed"

// GangDefinitions are resource definitions for the PodGroups of scheduler-plugins and of Volcano: YAML, to be
// applied. They have the fields that a scheduler reads and writes, and are served as those projects serve theirs:
// the status of a Volcano PodGroup is part of the object, that of scheduler-plugins is a resource of its own.
//
//go:embed gangs/definitions.yaml
var GangDefinitions []byte

// GangRoles let the user system:kube-scheduler, which is that of SchedulerKubeconfig, work with them.
//
//go:embed gangs/roles.yaml
var GangRoles []byte
