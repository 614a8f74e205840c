// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Style is another way in which gangs get their places than by one decision for all members: its pods are queued and decided
// one by one, and a pod that has a place holds it and waits until enough others of its gang have one (upstream: Permit). It
// is there to compare and to learn from, not for production: each of the rules below has a price that docs/gangs.md
// measures.
//
// What a style is made of are the rules in which the known gang schedulers differ.
type Style struct {
	// Name is the plugin that gates and rejects pods, in reasons and records.
	Name string
	// Adjacent orders the queue by priority, then by the age of the gang, then by name, so that the members of a gang stand
	// together while they are active.
	Adjacent bool
	// Gated keeps members from being tried before enough of them are there and none of them waits for anything else; then all
	// are let go together. Without it a member is tried when it comes, and rejected at the attempt.
	Gated bool
	// OnPermit lets a gang go only when the next pod of any kind has got its place; without it a gang goes as soon as it is
	// ready. For Gated.
	OnPermit bool
	// FirstActivates makes the first member that has a place wake the others, and only the first.
	FirstActivates bool
	// Wait is how long a member waits for the others, and Jitter how much longer at most, drawn for each try of the gang.
	Wait, Jitter record.Time
	// Tolerated is the share of the quorum, in percent, that may be missing when a member fits nowhere without the others
	// being turned back.
	Tolerated int
	// Backoff is how long a gang is not tried after it was turned back, 0 for no time; above MaxBackoff it does not grow, and
	// up to half of it is added by a draw. With a MaxBackoff of 0 it neither grows nor is anything added.
	Backoff, MaxBackoff record.Time
	// Exact lets the waiting go when they are as many as the size, those that run not counted, and lets a pod of a gang that
	// runs in part go alone.
	Exact bool
	// Replaces lets pods go alone that come to a gang that has been whole.
	Replaces bool
	// Denominates clears the nominations of all members when one fails.
	Denominates bool
	// ByName counts members by their names, also those that are being deleted.
	ByName bool
	// Explains tells each waiting pod why it waits, in an event.
	Explains bool
}

// Coscheduling is what the plugin of that name does (sigs scheduler-plugins, pkg/coscheduling).
func Coscheduling() Style {
	return Style{Name: "Coscheduling", Adjacent: true, FirstActivates: true, Wait: 60 * record.Second, Tolerated: 10, ByName: true}
}

// Pfnet is what pfnet's plugin does (pfnet scheduler-plugins, plugins/gang).
func Pfnet() Style {
	return Style{Name: "gang", Gated: true, OnPermit: true, Wait: 30 * record.Second, Jitter: 30 * record.Second, Exact: true, Denominates: true, Explains: true}
}

// ImprovedCoscheduling is coscheduling with what it lacks, as far as that can be had while members are decided one by one.
func ImprovedCoscheduling() Style {
	return Style{Name: "ImprovedCoscheduling", Adjacent: true, Gated: true, Wait: 60 * record.Second, Jitter: 30 * record.Second,
		Backoff: record.Second, MaxBackoff: 10 * record.Second, Replaces: true, Denominates: true, Explains: true}
}

// lobby is where the members of gangs wait for each other under a Style; nil with none.
type lobby struct {
	Style
	e       *Engine
	parties map[cluster.GangKey]*party // gang -> its pods
	of      map[cluster.UID]*party     // pod -> its gang; of all pods of gangs

	news    bool            // a waiting pod may go, or must
	touched []*party        // whose members may be let go now
	ready   []*party        // those that go with the next permit
	wake    []record.PodRef // to be made active
	draws   uint64          // made so far
}

// party is the pods of one gang.
type party struct {
	key   cluster.GangKey
	since record.Time // its age, for the order of the queue
	// waiting are the pods without a node in the API, by arrival.
	waiting []cluster.UID
	let     map[cluster.UID]bool // those that may be tried
	seats   []*seat              // those that have a place and wait
	until   record.Time          // when they stop
	// notBefore is when the gang may be tried again, failures how often it was turned back in a row.
	notBefore record.Time
	failures  int
	// look is when to ask again whether it is ready; 0 for no time.
	look record.Time
}

// newLobby makes the lobby of a style; nil for none.
func newLobby(e *Engine, s *Style) *lobby {
	if s == nil {
		return nil
	}
	return &lobby{Style: *s, e: e, parties: map[cluster.GangKey]*party{}, of: map[cluster.UID]*party{}}
}

// join adds the style's plugin to a profile.
func (r *lobby) join(p *Profile) {
	if r == nil {
		return
	}
	p.Gates, p.Wakers = append(slices.Clone(p.Gates), usher{r}), append(slices.Clone(p.Wakers), usher{r})
	p.Reservers = append(slices.Clone(p.Reservers), usher{r})
}

// order is the order of the queue under the style.
func (r *lobby) order(base plugin.Less) plugin.Less {
	if r == nil || !r.Adjacent {
		return base
	}
	return adjacent{base, r}
}

// adjacent orders pods of one priority by the age of their gang, so that those of one gang stand together (upstream:
// coscheduling.Less).
type adjacent struct {
	base plugin.Less
	r    *lobby
}

func (a adjacent) Name() string { return a.r.Name }

func (a adjacent) Before(x, y *cluster.Pod) bool {
	if a.base != nil {
		if a.base.Before(x, y) {
			return true
		}
		if a.base.Before(y, x) {
			return false
		}
	}
	return cmp.Or(cmp.Compare(a.age(x), a.age(y)), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name)) < 0
}

func (a adjacent) age(p *cluster.Pod) record.Time {
	if t := a.r.of[p.UID]; t != nil {
		return t.since
	}
	return p.Created
}

// seen takes note of a version of a pod, before the queue hears of it.
func (r *lobby) seen(p *cluster.Pod) {
	if r == nil {
		return
	}
	t := r.of[p.UID]
	if t == nil && (p.Gang == nil || p.Gang.Bad != "") {
		return
	}
	if _, _, assumed, placed := r.e.store.Snapshot().PodOn(p.UID); p.NodeName == "" && placed && !assumed {
		return // an old version arrives after the bound one
	}
	if t == nil {
		t = r.parties[p.Gang.Key]
		if t == nil {
			t = &party{key: p.Gang.Key, since: p.Created, let: map[cluster.UID]bool{}}
			if obj := r.e.gangObject(t.key); obj != nil && !obj.CreationTimestamp.IsZero() {
				t.since = record.Time(obj.CreationTimestamp.UnixNano())
			}
			r.parties[t.key] = t
		}
		r.of[p.UID] = t
	}
	switch at := slices.Index(t.waiting, p.UID); {
	case p.NodeName != "" && at >= 0:
		t.waiting = slices.Delete(t.waiting, at, at+1)
		delete(t.let, p.UID)
	case p.NodeName == "" && at < 0:
		t.waiting = append(t.waiting, p.UID)
	}
	r.touch(t)
}

// gone takes note of a pod's end.
func (r *lobby) gone(uid cluster.UID) {
	if r == nil || r.of[uid] == nil {
		return
	}
	t := r.of[uid]
	delete(r.of, uid)
	delete(t.let, uid)
	t.waiting = slices.DeleteFunc(t.waiting, func(w cluster.UID) bool { return w == uid })
	r.touch(t)
}

// changed takes note of a gang's object.
func (r *lobby) changed(key cluster.GangKey) {
	if r == nil || r.parties[key] == nil {
		return
	}
	r.touch(r.parties[key])
	r.e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: groupObject, Action: plugin.Update}})
}

func (r *lobby) touch(t *party) {
	if !slices.Contains(r.touched, t) {
		r.touched = append(r.touched, t)
	}
}

// quorum is how many pods of a gang must have a place.
func (r *lobby) quorum(t *party) int {
	var pods []*cluster.Pod
	for _, uid := range t.waiting {
		if p := r.e.pending[uid]; p != nil {
			pods = append(pods, p)
		}
	}
	return r.e.quorumOf(t.key, pods).pods
}

// placed is how many pods of a gang have a place in a state of the cluster: those that count, and those of them that are
// seen bound.
func (r *lobby) placed(s cluster.Snapshot, t *party) (n, bound int) {
	names := map[string]bool{} // pod -> counted
	for _, m := range s.GangMembers(t.key) {
		if r.ByName {
			names[m.Pod.Name] = true
		} else if !m.Pod.Terminating {
			n++
		}
		if !m.Assumed {
			bound++
		}
	}
	return n + len(names), bound
}

// there is how many pods of a gang exist, those that are being deleted only where they count.
func (r *lobby) there(t *party) int {
	n := 0
	for _, m := range r.e.store.Snapshot().GangMembers(t.key) {
		if !m.Assumed && (r.ByName || !m.Pod.Terminating) {
			n++
		}
	}
	for _, uid := range t.waiting {
		if p := r.e.pending[uid]; p != nil && (r.ByName || !p.Terminating) {
			n++
		}
	}
	return n
}

// usher is the plugin of a style: a gate, and what takes a seat for a pod that has a place.
type usher struct{ r *lobby }

func (u usher) Name() string { return u.r.Name }

// Gated keeps members back that are not let go. The queue asks when something has woken one: then all may be ready.
func (u usher) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	t := u.r.of[p.UID]
	if !u.r.Gated || t == nil || t.let[p.UID] {
		return "", true
	}
	u.r.touch(t)
	if there, q := u.r.there(t), u.r.quorum(t); there < q {
		return fmt.Sprintf("gang %s needs %d pods, %d are there", t.key, q, there), false
	}
	return fmt.Sprintf("waits until all pods of gang %s can be tried", t.key), false
}

// Wakes registers for pods that get nodes, where members are tried one by one (upstream: EventsToRegister; a pod that comes
// without a node is no event, see kubernetes#110175). Members that are let go together wait for nothing else.
func (u usher) Wakes() []plugin.Wake {
	if u.r.Gated {
		return nil
	}
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.Add}},
		{Event: plugin.Event{Resource: groupObject, Action: plugin.Add | plugin.Update}},
	}
}

// groupObject is the resource of objects that declare gangs.
const groupObject plugin.Resource = "PodGroup"

// check is why a pod must not be tried now, empty if it may (upstream: PreFilter).
func (r *lobby) check(p *cluster.Pod) string {
	if r == nil || p.Gang == nil {
		return ""
	}
	t := r.of[p.UID]
	switch {
	case p.Gang.Bad != "":
		return p.Gang.Bad
	case p.Gang.Key.Source.HasObject() && r.e.gangObject(p.Gang.Key) == nil:
		return fmt.Sprintf("there is no pod group %s", p.Gang.Key)
	case t == nil:
	case r.Gated && !t.let[p.UID]:
		return fmt.Sprintf("another pod of gang %s was turned back", t.key)
	case r.Gated:
	case r.e.now < t.notBefore:
		return fmt.Sprintf("gang %s failed recently", t.key)
	case r.there(t) < r.quorum(t):
		return fmt.Sprintf("gang %s needs %d pods, %d are there", t.key, r.quorum(t), r.there(t))
	}
	return ""
}
