// SPDX-License-Identifier: Apache-2.0

// Package flags owns what is taken from the command line of kube-scheduler 1.36.3: the list of its flags, to which
// the tests of cmd/kumiki hold ours, and the table of feature gates that cmd/kumiki/gates has embedded. Both are
// read from upstream's own command, checked in, and compared again by the tests here; with -update these write
// them.
//
// It also owns the comparison of both commands as processes: which command lines they refuse, in which words and
// with which exit code, and that the configuration which one writes starts the other.
package flags
