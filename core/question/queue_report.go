// SPDX-License-Identifier: Apache-2.0

package question

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// subQueues are the sub-queues in the order of a QueueReport.
var subQueues = []record.SubQueue{record.Active, record.InFlight, record.Backoff, record.Unschedulable, record.Gated}

// QueueReport reports on every unit that waits or is in flight.
func (i Inspector) QueueReport() record.QueueReport {
	waiting := i.view.Queue()
	counts := waiting.Counts()
	r := record.QueueReport{At: i.view.Now(), InFlightEvents: waiting.InFlightEvents(), Counts: record.QueueCounts{
		Active: counts[record.Active], InFlight: counts[record.InFlight], Backoff: counts[record.Backoff],
		Unschedulable: counts[record.Unschedulable], Gated: counts[record.Gated],
	}}
	for _, sub := range subQueues {
		waiting.Each(sub, func(u *queue.Unit) { r.Entries = append(r.Entries, i.queueEntry(u, sub)) })
	}
	return r
}

func (i Inspector) queueEntry(u *queue.Unit, sub record.SubQueue) record.QueueEntry {
	p := u.Pod()
	entry := record.QueueEntry{
		Pod: p.Ref(), Where: sub, Profile: p.Spec.SchedulerName, Priority: p.Spec.Priority, Attempts: u.Attempts,
		Since: u.Since, Created: p.Created, Plugins: u.Plugins,
	}
	if u.Gang != (cluster.GangKey{}) {
		entry.Gang, entry.Priority = u.Key, u.Priority()
		for _, m := range u.Members {
			entry.Members = append(entry.Members, string(m.UID))
		}
	}
	switch timeout := i.view.Config().UnschedulableTimeout; {
	case sub == record.Backoff:
		entry.Until = u.BackoffUntil
	case sub == record.Unschedulable && u.Aside == "" && timeout > 0:
		entry.Until = u.Since + timeout
	}
	return entry
}
