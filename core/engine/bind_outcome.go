// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bindDone learns what became of a bind.
func (b *binds) bindDone(ev BindDone) {
	uid := cluster.UID(ev.Pod.UID)
	f := b.of[uid]
	if f == nil || f.stage != binding {
		b.e.trouble(ev.Pod.Key(), "outcome of a bind that was not asked for", fmt.Sprintf("node %q, outcome %d", ev.Node, ev.Outcome))
		return
	}
	b.remove(f)
	s := b.e.store.Snapshot()
	_, n, assumed, inLedger := s.PodOn(uid)
	confirmed := inLedger && !assumed
	switch {
	case confirmed && s.NodeName(n) != f.node:
		b.letGo(f) // the watch was faster than the answer, and showed it elsewhere; Trouble was emitted then
	case ev.Outcome == Bound, confirmed:
		b.e.writeEvent(ev.Pod, "Normal", "Scheduled", "Binding",
			fmt.Sprintf("Successfully assigned %s/%s to %s", ev.Pod.Namespace, ev.Pod.Name, f.node))
		if f.recalled != "" {
			b.recheck(onNode(f.pod, f.node)) // the Recall came too late, and the pod takes capacity that was left to others
		}
	case ev.Outcome == BindRecalled:
		if f.recalled == "" {
			f.recalled = ev.Message // not we asked
		}
		b.endRecall(f)
	case ev.Outcome == BindFailed && f.gang != nil && f.recalled == "" && assumed && b.e.pending[uid] != nil:
		b.retryBind(f, ev.Message)
	case ev.Outcome == BindFailed, ev.Outcome == BindRejected:
		b.endFlight(f)
		b.retryAfterError(f, ev)
	case ev.Outcome == BoundElsewhere:
		b.endFlight(f)
		b.takeRoom(f.pod, ev.Node)
		b.e.trouble(ev.Pod.Key(), "pod was bound by someone else", fmt.Sprintf("decided %q, API server %q", f.node, ev.Node))
	case ev.Outcome == PodVanished:
		b.endFlight(f)
	}
}

// takeRoom counts a pod on the node where the API server has it, until the watch shows it there.
func (b *binds) takeRoom(p *cluster.Pod, node string) {
	n, ok := b.e.store.Snapshot().Find(node)
	if !ok || b.e.pending[p.UID] == nil {
		return
	}
	trial := b.e.store.Trial()
	trial.Assume(p, n)
	trial.Commit()
	if key, is := b.e.store.Snapshot().HeldGang(p.UID); is {
		b.e.gangChanged(key, memberPlaced)
	}
	b.recheck(onNode(p, node))
}

// retryAfterError puts a pod whose bind did not succeed back into the queue, unless it has gone meanwhile.
func (b *binds) retryAfterError(f *flight, ev BindDone) {
	p := b.e.pending[f.pod.UID]
	if p == nil {
		return
	}
	if f.gang != nil {
		b.e.backToGang(p, failed, ev.Message)
		b.e.tell(p, reasonOf(ev.Verdict()), ev.Message, f.shownUntilNow(p))
		return
	}
	f.unit.Members[0] = p
	d := b.decisionOf(f)
	d.Reasons = ev.Reasons()
	b.e.fail(f.unit, d, ev.Verdict(), ev.Message, f.shownUntilNow(p))
}

// bindBackoff is the wait before the bind of a gang's member is sent again.
var bindBackoff = evict.Backoff{First: record.Second, Most: 10 * record.Second}

// retryBind sends the bind of a gang's member again after a while: its gang has its places, and a bind that failed
// for a reason that goes away must not cost them (rule R8).
func (b *binds) retryBind(f *flight, message string) {
	f.retries++
	wait := bindBackoff.After(f.retries)
	f.before = []string{"the bind to be tried again: " + message}
	b.add(f)
	b.wait(f, b.e.now+wait)
	b.e.writeEvent(f.pod.Ref(), "Warning", "FailedScheduling", "Binding",
		fmt.Sprintf("gang %s: binding to %s failed and is tried again: %s", f.gang.Name, f.node, message))
}
