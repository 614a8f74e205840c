// SPDX-License-Identifier: Apache-2.0

// Command nextrelease lists what changed in kube-scheduler between two releases of Kubernetes, as far as the source of
// both shows it: versions of modules, feature gates, flags, configuration types, default plugins, registered events,
// messages, metrics, access rights, API types, thresholds of scheduler_perf, and the functions whose text differs.
//
//	nextrelease -from 1.36.3 -to 1.37.1
//
// Each table is a map from a key (the name of a gate, of a metric …) to a value (its default, its labels …). The
// command extracts each table from both releases and prints keys that were added, removed or changed. The modules come
// from the module cache; `go mod download` fetches those that are not in it.
//
// What a changed function does differently is for a person to read: the last table names those functions, and
// docs/contributing/new-release.md says what to do with them.
//
// Rejected: a textual diff of the releases, which is too long to read; packages loaded with their types, which need the
// complete dependencies of both releases and show nothing more in tables that are written as literals.
package main
