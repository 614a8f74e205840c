// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A victim may never die: a node whose kubelet is gone, a container that cannot be killed. upstream's preemptor waits for it
// without end, and so does ours where it does as upstream. In units there is a bound: a pod that is there for longer than
// preempt.Config.VictimTimeout after the end of its grace period is not counted on any more. Who waits for it looks for other
// room, and has nobody evicted from the node where it stays. If there is no other room the gang keeps what it has: the pod
// may go after all.
//
// A preemptor that has given up on victims once is twice as patient with the next ones, so that a cause which is not the
// node's does not empty a cluster.
//
// Rejected: to count from the eviction, which gives up on pods that use the grace period which they were granted; to remember
// who is stuck, which a restart forgets: the API's own time of the deletion says it.

// mostPatience bounds how often the time doubles: 16 times the first.
const mostPatience = 4

// overdue tells whether a pod that goes has been there for too long after its grace period, for who has given up on others so
// many times.
func (e *Engine) overdue(prof *profile, p *cluster.Pod, gaveUp int) bool {
	at := overdueAt(prof, p, gaveUp)
	return at != 0 && e.now >= at
}

// overdueAt is from when on a pod that goes is not counted on; 0 for never.
func overdueAt(prof *profile, p *cluster.Pod, gaveUp int) record.Time {
	if !p.Terminating || p.GoneBy == 0 || prof.Preemption.VictimTimeout == 0 {
		return 0
	}
	return p.GoneBy + prof.Preemption.VictimTimeout<<min(gaveUp, mostPatience)
}

// stuckOn tells a search for victims which pods that go are no room to come.
func (e *Engine) stuckOn(prof *profile) func(*cluster.Pod) bool {
	return func(p *cluster.Pod) bool { return e.overdue(prof, p, 0) }
}

// stuckNode is why nobody more goes from a node.
const stuckNode = "a pod that was evicted from its node does not go"

// sparingNodes keeps pods on some nodes from being evicted, and those that never tells of; nil for none.
func (e *Engine) sparingNodes(never func(*cluster.Pod) string, nodes map[string]bool) func(*cluster.Pod) string {
	if len(nodes) == 0 {
		return never
	}
	s := e.store.Snapshot()
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

// stuck is what does not go of what was evicted for a pod or a gang.
type stuck struct {
	// gaveUp is how many sets of victims before were given up on.
	gaveUp int
	// told are the pods of which it was told that they do not go; spared those of all sets of victims: nobody else is evicted from
	// their nodes for as long as they are there.
	told   map[cluster.UID]bool   // pod -> true
	spared map[cluster.UID]string // pod -> its node
}

// after is the same for the next set of victims.
func (st *stuck) after() stuck {
	if len(st.told) == 0 {
		return stuck{gaveUp: st.gaveUp, spared: st.spared}
	}
	return stuck{gaveUp: st.gaveUp + 1, spared: st.spared}
}

// why an eviction is in vain whose victims were given up on.
func (st *stuck) why(otherwise string) string {
	if len(st.told) > 0 {
		return "pods that were to go for it do not go"
	}
	return otherwise
}

// giveUpOn tells, once of each, of pods that do not go.
func (e *Engine) giveUpOn(st *stuck, pods []*cluster.Pod, who record.PodRef, gang string) {
	var refs []record.PodRef
	var names []string
	s := e.store.Snapshot()
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
	e.emit(VictimsStuck{For: who, Gang: gang, Pods: refs})
	if more := len(names) - stuckShown; more > 0 {
		names = append(names[:stuckShown:stuckShown], fmt.Sprintf("%d more", more))
	}
	e.emit(WriteEvent{who, "Warning", "VictimsStuck", "Preempting",
		"pods that were to make room for it are being deleted and do not go: " + strings.Join(names, ", ") + "; other room is looked for"})
}

// stuckShown is how many pods an event names.
const stuckShown = 3

// noOther is told by who has victims that do not go, and no other room.
const noOther = "preemption: pods that were to make room for it do not go, and there is no other room that evictions could make."

// stuckLeft are the victims of a gang that do not go, by name.
func (e *Engine) stuckLeft(prof *profile, c *clearance) (pods []*cluster.Pod) {
	if c == nil || prof.Preemption.VictimTimeout == 0 {
		return nil
	}
	s := e.store.Snapshot()
	for uid := range c.left { // order: sorted below
		if p, n, _, there := s.PodOn(uid); there && s.Node(n) != nil && e.overdue(prof, p, c.gaveUp) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, byKey)
	return pods
}

// sparedNodes are the nodes from which nobody is evicted for a gang, whose clearance may be nil.
func (e *Engine) sparedNodes(c *clearance) map[string]bool {
	if c == nil {
		return nil
	}
	return e.nodesOf(c.spared)
}

// nodesOf are the nodes of pods that are still there.
func (e *Engine) nodesOf(stuck map[cluster.UID]string) (nodes map[string]bool) { // stuck: pod -> its node
	s := e.store.Snapshot()
	for uid, node := range stuck { // order: a set is made
		if _, n, _, there := s.PodOn(uid); there && s.NodeName(n) == node {
			if nodes == nil {
				nodes = map[string]bool{}
			}
			nodes[node] = true
		}
	}
	return nodes
}

// stuckFor are the pods on the node for which a pod by itself is nominated, evicted and of lower priority, that do not go.
func (e *Engine) stuckFor(prof *profile, p *cluster.Pod, gaveUp int) (pods []*cluster.Pod) {
	s := e.store.Snapshot()
	n, ok := s.Find(e.queue.NominationOf(p.UID))
	if !ok {
		return nil
	}
	s.EachPod(n, func(other *cluster.Pod, _ bool) {
		if other.Preempted && other.Spec.Priority < p.Spec.Priority && e.overdue(prof, other, gaveUp) {
			pods = append(pods, other)
		}
	})
	slices.SortFunc(pods, byKey)
	return pods
}

// giveUpFor gives up on the victims of a pod by itself that do not go. It tells whether there are any.
func (e *Engine) giveUpFor(prof *profile, p *cluster.Pod) bool {
	late := e.stuckFor(prof, p, e.gaveUpFor(p.UID))
	if len(late) == 0 {
		return false
	}
	ev := e.evictions[p.UID]
	if ev == nil { // a scheduler before this one asked for them
		ev = &eviction{preemptor: p.Ref(), key: e.thrashKeyOf(p), node: e.queue.NominationOf(p.UID), from: map[string]bool{}, done: true, counted: true}
		e.evictions[p.UID] = ev
	}
	e.giveUpOn(&ev.stuck, late, p.Ref(), "")
	return true
}

// sparedFor are the nodes from which nobody is evicted for a pod by itself.
func (e *Engine) sparedFor(uid cluster.UID) map[string]bool {
	if ev := e.evictions[uid]; ev != nil {
		return e.nodesOf(ev.spared)
	}
	return nil
}

// gaveUpFor is how often victims for a pod by itself were given up on.
func (e *Engine) gaveUpFor(uid cluster.UID) int {
	if ev := e.evictions[uid]; ev != nil {
		return ev.gaveUp
	}
	return 0
}

// look is when it is to be looked whether victims do not go: those of a gang, or of a pod by itself.
type look struct {
	at   record.Time
	gang cluster.GangKey
	pod  cluster.UID
	// decision asked for the victims; a later one has a look of its own.
	decision uint64
	// again tries the pod whatever its victims do: evictions for it were refused.
	again bool
}

// lookAt notes a time to look. The looks are in the order of their times.
func (e *Engine) lookAt(l look) {
	at, _ := slices.BinarySearchFunc(e.looks, l, func(a, b look) int { return cmp.Or(cmp.Compare(a.at, b.at), -1) })
	e.looks = slices.Insert(e.looks, at, l)
}

// watchVictims has victims looked at when they could first be overdue. Those that were evicted now have no end of their grace
// period yet; it is not before now.
func (e *Engine) watchVictims(prof *profile, gaveUp int, l look) {
	if prof.Preemption.VictimTimeout == 0 {
		return
	}
	if l.at = e.nextOverdue(prof, l); l.at == 0 {
		l.at = e.now + prof.Preemption.VictimTimeout<<min(gaveUp, mostPatience)
	}
	e.lookAt(l)
}

// lookAtVictims tries those again whose victims do not go.
func (e *Engine) lookAtVictims() {
	for len(e.looks) > 0 && e.looks[0].at <= e.now {
		l := e.looks[0]
		e.looks = slices.Delete(e.looks, 0, 1)
		u, prof := e.lookedFor(l)
		switch {
		case u == nil:
			continue
		case l.again:
			e.queue.Activate([]record.PodRef{u.Pod().Ref()})
			continue
		}
		at := e.nextOverdue(prof, l)
		switch {
		case at == 0: // nothing of it is seen to go, or it was told of all that is
			at = e.now + prof.Preemption.VictimTimeout
		case at <= e.now:
			e.queue.Activate([]record.PodRef{u.Pod().Ref()})
			at = e.now + prof.Preemption.VictimTimeout
		}
		l.at = at
		e.lookAt(l)
	}
}

// lookedFor is the unit that waits for the victims of a look, nil for none that does.
func (e *Engine) lookedFor(l look) (u *queue.Unit, prof *profile) {
	if l.pod != "" {
		if u, _, _ = e.queue.Lookup(l.pod); u == nil || e.evictions[l.pod] != nil && e.evictions[l.pod].decision != l.decision {
			return nil, nil
		}
	} else if c := e.clearances[l.gang]; c == nil || c.decision != l.decision {
		return nil, nil
	} else if u = e.queue.Gang(l.gang); u == nil {
		return nil, nil
	}
	prof = e.profiles[u.Pod().Spec.SchedulerName]
	if prof == nil || prof.Preemption == nil {
		return nil, nil
	}
	return u, prof
}

// nextOverdue is when the first of some victims is overdue; 0 if none is seen to go.
func (e *Engine) nextOverdue(prof *profile, l look) (first record.Time) {
	s := e.store.Snapshot()
	earlier := func(p *cluster.Pod, gaveUp int) {
		if at := overdueAt(prof, p, gaveUp); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	if l.pod == "" {
		c := e.clearances[l.gang]
		for uid := range c.left { // order: the least of all
			if p, _, _, there := s.PodOn(uid); there && !c.told[uid] {
				earlier(p, c.gaveUp)
			}
		}
	} else if n, ok := s.Find(e.queue.NominationOf(l.pod)); ok {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if p.Preempted {
				earlier(p, e.gaveUpFor(l.pod))
			}
		})
	}
	return first
}

// nextLook is when the first of them is due; 0 for no time.
func (e *Engine) nextLook() record.Time {
	if len(e.looks) == 0 {
		return 0
	}
	return e.looks[0].at
}

// findLooks watches, once all pods are known, victims that a scheduler before this one had evicted for pods by themselves.
func (e *Engine) findLooks(u *queue.Unit) {
	p := u.Pod()
	prof := e.profiles[p.Spec.SchedulerName]
	if prof == nil || prof.Preemption == nil || e.queue.NominationOf(p.UID) == "" {
		return
	}
	l := look{pod: p.UID}
	if l.at = e.nextOverdue(prof, l); l.at != 0 {
		e.lookAt(l)
	}
}
