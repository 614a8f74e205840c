// SPDX-License-Identifier: Apache-2.0

// Package record owns the scheduler's reports on its own work: typed records of decisions and of moves between
// queues. engine and kube write them; logs, events, `kumiki why`, `kumiki queue`, metrics and the recorder read them.
// It is a leaf and imports nothing of kumiki.
package record
