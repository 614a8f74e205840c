// SPDX-License-Identifier: Apache-2.0

// Package scheduler owns a stand-in for k8s.io/kubernetes/pkg/scheduler in which kumiki is the scheduler: New and its
// options, and the fields and methods of Scheduler that upstream's integration tests use, in upstream's types. tools/seam.sh puts it
// in place of that package in a copy of the module, so that these tests run against kumiki unchanged.
//
// Plugins of the tests are hosted (kubescheduler/app), and feature gates are those of the process. A Scheduler that
// does not run follows the cluster and decides nothing (Hold), so tests can look at its queue and let it decide once
// (ScheduleOne). What has no counterpart is absent: functions return errAbsent, and methods of the queue and the
// cache that a scheduler uses on itself panic.
//
// Rejected: building the tests' types on upstream's queue and cache, filled by kumiki. Tests would then read what
// upstream would do with the same events.
package scheduler
