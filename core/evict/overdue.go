// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A victim may never terminate: the kubelet of its node is gone, or a container cannot be killed. Upstream's preemptor
// waits for it without end, and so does this one where it does as upstream. In units there is a bound: a pod that is
// there for longer than preempt.Config.VictimTimeout after the end of its grace period is not counted on any more. The
// preemptor then looks for other capacity, and evicts no pods from the node where the victim stays. If there is no
// other capacity the gang keeps what it has: the pod may terminate after all.
//
// A preemptor that has given up on victims once waits twice as long for the next ones, so that a cause which is not
// the node's does not empty a cluster.
//
// The grace period begins when the pod was first seen to terminate, by this scheduler's clock: the API server's clock
// may be an hour off, and then every victim would be overdue at once, or none within the hour. Of a pod that terminated
// before it was first seen, as after a restart, only the API server's time is known; it counts unless it is in the
// future.
//
// Rejected: to count from the eviction, which gives up on pods that use the grace period which they were granted; to
// remember what is stuck, which a restart forgets: the API's own time of the deletion says it.

// maxDoublings bounds how often the time doubles: 16 times the first.
const maxDoublings = 4

// patience is how long victims are counted on after their grace period, by a preemptor that has given up on others so
// many times.
func patience(prof *Profile, gaveUp int) record.Time {
	first := prof.Preemption.VictimTimeout
	return Backoff{First: first, Most: first << maxDoublings}.After(gaveUp + 1)
}

// overdue reports whether a pod that terminates has been there for too long after its grace period.
func (m *Manager) overdue(prof *Profile, p *cluster.Pod, gaveUp int) bool {
	at := m.overdueAt(prof, p, gaveUp)
	return at != 0 && m.host.Now() >= at
}

// overdueAt returns from when on a pod that terminates is not counted on; 0 for never.
func (m *Manager) overdueAt(prof *Profile, p *cluster.Pod, gaveUp int) record.Time {
	if !p.Terminating || p.GoneBy == 0 || prof.Preemption.VictimTimeout == 0 {
		return 0
	}
	by := p.GoneBy
	if since, seen := m.terminating[p.UID]; seen && p.DeletedAt != 0 {
		by = since + p.GoneBy - p.DeletedAt // a shortened grace period counts, too
	}
	return by + patience(prof, gaveUp)
}

// TerminationSeen follows a bound pod that is seen to terminate. first reports whether it was not known before.
func (m *Manager) TerminationSeen(p *cluster.Pod, first bool) {
	since := m.host.Now()
	if first && p.DeletedAt != 0 {
		since = min(since, p.DeletedAt)
	}
	m.terminating[p.UID] = since
}

// OverdueOn tells a search for victims which pods that terminate are no capacity to come.
func (m *Manager) OverdueOn(prof *Profile) func(*cluster.Pod) bool {
	return func(p *cluster.Pod) bool { return m.overdue(prof, p, 0) }
}

// stuckNode is why no more pods go from a node.
const stuckNode = "a pod that was evicted from its node does not go"

// SparingNodes keeps pods on some nodes from being evicted, and those that never names; nil for none.
func (m *Manager) SparingNodes(never func(*cluster.Pod) string, nodes map[string]bool) func(*cluster.Pod) string {
	if len(nodes) == 0 {
		return never
	}
	s := m.store.Snapshot()
	return func(p *cluster.Pod) string {
		if never != nil {
			if why := never(p); why != "" {
				return why
			}
		}
		if _, n, _, there := s.PodOn(p.UID); there && nodes[s.NodeName(n)] {
			return stuckNode
		}
		return ""
	}
}

// stuck is what does not terminate of what was evicted for a unit.
type stuck struct {
	// gaveUp is how many sets of victims before were given up on.
	gaveUp int // kept
	// told are the pods that were reported as stuck; spared are those of all sets of victims: no other pod is evicted
	// from their nodes for as long as they are there.
	told   map[cluster.UID]bool   // kept; pod -> true
	spared map[cluster.UID]string // kept; pod -> its node
}

// after returns the same for the next set of victims.
func (st *stuck) after() stuck {
	if len(st.told) == 0 {
		return stuck{gaveUp: st.gaveUp, spared: st.spared}
	}
	return stuck{gaveUp: st.gaveUp + 1, spared: st.spared}
}

// why returns why an eviction is wasted: because its victims were given up on, or otherwise.
func (st *stuck) why(otherwise string) string {
	if len(st.told) > 0 {
		return "pods that were to go for it do not go"
	}
	return otherwise
}

// giveUpOn reports, once each, pods that do not terminate.
func (m *Manager) giveUpOn(st *stuck, pods []*cluster.Pod, who record.PodRef, gang string) {
	var refs []record.PodRef
	var names []string
	s := m.store.Snapshot()
	for _, p := range pods {
		_, n, _, there := s.PodOn(p.UID)
		if st.told[p.UID] || !there {
			continue
		}
		if st.told == nil {
			st.told = map[cluster.UID]bool{}
		}
		if st.spared == nil {
			st.spared = map[cluster.UID]string{}
		}
		st.told[p.UID], st.spared[p.UID] = true, s.NodeName(n)
		refs, names = append(refs, p.Ref()), append(names, fmt.Sprintf("%s on %s", p.Key(), s.NodeName(n)))
	}
	if len(refs) == 0 {
		return
	}
	m.host.Emit(StuckVictims{For: who, Gang: gang, Pods: refs})
	if more := len(names) - stuckShown; more > 0 {
		names = append(names[:stuckShown:stuckShown], fmt.Sprintf("%d more", more))
	}
	m.host.Emit(Warning{who, "VictimsStuck", "pods that were to make room for it are being deleted and do not go: " +
		strings.Join(names, ", ") + "; other room is looked for"})
}

// stuckShown is how many pods an event names.
const stuckShown = 3

// NoOther is the message of a unit whose victims do not terminate, and for which no other evictions free capacity.
const NoOther = "preemption: pods that were to make room for it do not go, and there is no other room that evictions " +
	"could make."

// StuckOfGang returns the victims of a gang that do not terminate, by name.
func (m *Manager) StuckOfGang(prof *Profile, key cluster.GangKey) (pods []*cluster.Pod) {
	ev := m.gang(key)
	if ev == nil || prof.Preemption.VictimTimeout == 0 {
		return nil
	}
	s := m.store.Snapshot()
	for uid := range ev.left { // order: sorted below
		if p, n, _, there := s.PodOn(uid); there && s.Node(n) != nil && m.overdue(prof, p, ev.gaveUp) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, cluster.CompareKeys)
	return pods
}

// StuckOfPod returns the pods on the node for which a pod by itself is nominated, evicted and of lower priority, that
// do not terminate.
func (m *Manager) StuckOfPod(prof *Profile, p *cluster.Pod) (pods []*cluster.Pod) {
	s := m.store.Snapshot()
	n, ok := s.Find(m.queue.NominationOf(p.UID))
	if !ok {
		return nil
	}
	gaveUp := m.gaveUp(p.UID)
	s.EachPod(n, func(other *cluster.Pod, _ bool) {
		if other.Preempted && other.Spec.Priority < p.Spec.Priority && m.overdue(prof, other, gaveUp) {
			pods = append(pods, other)
		}
	})
	slices.SortFunc(pods, cluster.CompareKeys)
	return pods
}

// Spared returns the nodes from which no pods are evicted for a unit.
func (m *Manager) Spared(u Unit) (nodes map[string]bool) {
	ev := m.of[u]
	if ev == nil {
		return nil
	}
	s := m.store.Snapshot()
	for uid, node := range ev.spared { // order: a set is made
		if _, n, _, there := s.PodOn(uid); there && s.NodeName(n) == node {
			if nodes == nil {
				nodes = map[string]bool{}
			}
			nodes[node] = true
		}
	}
	return nodes
}

// gaveUp returns how often victims for a pod by itself were given up on.
func (m *Manager) gaveUp(uid cluster.UID) int {
	if ev := m.current(uid); ev != nil {
		return ev.gaveUp
	}
	return 0
}

// giveUpForPod gives up on the victims of a pod by itself that do not terminate. It reports whether there are any.
func (m *Manager) giveUpForPod(prof *Profile, p *cluster.Pod) bool {
	late := m.StuckOfPod(prof, p)
	if len(late) == 0 {
		return false
	}
	ev := m.current(p.UID)
	if ev == nil { // a scheduler before this one requested them
		ev = &Eviction{unit: Unit{Pod: p.UID}, state: Wasted, asked: p.Ref(),
			owner: OwnerOf(m.store.Snapshot(), p), node: m.queue.NominationOf(p.UID)}
		if last := m.of[ev.unit]; last != nil {
			ev.failures = last.failures
		}
		m.add(ev)
	}
	m.giveUpOn(&ev.stuck, late, p.Ref(), "")
	return true
}
