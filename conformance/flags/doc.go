// SPDX-License-Identifier: Apache-2.0

// Package flags owns the data about the command line of kube-scheduler 1.37.1: the list of its flags, with which the
// tests of app/command compare ours, and the table of feature gates that app/command/gates embeds. Both are read from
// upstream's own command and checked in. The tests here compare them again; with -update they write them.
//
// It also owns the comparison of both commands as processes: which command lines they reject, with which message and
// exit code, and whether each starts with the configuration that the other writes.
package flags
