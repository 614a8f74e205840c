// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Start is when every history begins: on a whole half minute, where upstream's
// flush of old pods is due.
var Start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// Make starts the queue under comparison at a time.
type Make func(start time.Time) Queue

// player plays one history on upstream and on the other queue.
type player struct {
	up, our Queue
	now     time.Time
	nodes   map[string]*v1.Node                       // name -> as the API has it
	pods    map[string]*v1.Pod                        // name -> as the API has it
	objects map[scenario.ObjectRef]scenario.APIObject // object -> as the API has it
	backed  map[string]bool                           // extended resource -> a class of the history had it
	// flying: UID -> name of the pod in flight.
	flying map[string]string
	// visits: sub-queue -> times a pod was seen to enter it.
	visits map[SubQueue]int
	before map[string]Place
	// names of all nodes there ever were, and "": a nomination can outlive its node, and leaves nothing when it ends.
	names []string
	// nominated counts nominations seen, so that an empty comparison shows.
	nominated int
}

func newPlayer(our Make) *player {
	p := &player{up: NewUpstream(Start), now: Start, nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}, objects: map[scenario.ObjectRef]scenario.APIObject{}, backed: map[string]bool{},
		flying: map[string]string{}, visits: map[SubQueue]int{}, names: []string{""}}
	if our != nil {
		p.our = our(Start)
	}
	return p
}

func (p *player) close() {
	for ref := range p.objects { // order: all of them go
		Objects().Delete(ref)
	}
	for name := range p.backed { // order: all of them go
		forgetBacked(name)
	}
	p.up.Close()
	if p.our != nil {
		p.our.Close()
	}
}

// forgetBacked makes upstream forget that a class backs an extended resource. It would not when the class was given
// another name that a newer class has, and then went: its cache then keeps the first name without limit
// (dynamic-resource-allocation, extendedresourcecache). The next history is not to see that.
func forgetBacked(name string) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "sweep"}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &name}}
	Objects().Set(class)
	Objects().Delete(scenario.ObjectRef{Kind: "DeviceClass", Name: class.Name})
}

// both runs f on each queue.
func (p *player) both(f func(q Queue)) {
	f(p.up)
	if p.our != nil {
		f(p.our)
	}
}

// step plays one step and returns the difference it shows, or "". A step that
// makes no sense in the state it meets (a pod that is not in flight, a node that
// is not there) does nothing: shrinking makes such steps.
func (p *player) step(op Op) string {
	// Time passes between steps, so that no two pods share a timestamp and order
	// never hangs on a map. Only one pod may come back on the dot.
	wait := time.Duration(op.Millis) * time.Millisecond
	switch {
	case !op.OnTheDot:
		p.now = p.now.Add(time.Millisecond + wait)
	case wait > 0:
		p.now = p.now.Add(wait).Truncate(flushEvery).Add(flushEvery)
	}
	p.both(func(q Queue) { q.Advance(p.now) })
	if d := p.apply(op); d != "" {
		return d
	}
	return p.compare()
}

func (p *player) apply(op Op) string {
	switch op.Kind {
	case NodeSet:
		old := p.nodes[op.Node.Name]
		p.nodes[op.Node.Name] = op.Node
		if !slices.Contains(p.names, op.Node.Name) {
			p.names = append(p.names, op.Node.Name)
		}
		p.both(func(q Queue) { q.NodeSet(old, op.Node) })
	case NodeGone:
		if old := p.nodes[op.Name]; old != nil {
			delete(p.nodes, op.Name)
			p.both(func(q Queue) { q.NodeGone(old) })
		}
	case PodSet:
		p.podSet(op.Pod)
	case PodGone:
		if old := p.pods[op.Name]; old != nil {
			delete(p.pods, op.Name)
			p.both(func(q Queue) { q.PodGone(old) })
		}
	case ObjectSet:
		old := p.objects[op.Object.Key()]
		p.objects[op.Object.Key()] = op.Object.APIObject
		if class, is := op.Object.APIObject.(*resourceapi.DeviceClass); is && class.Spec.ExtendedResourceName != nil {
			p.backed[*class.Spec.ExtendedResourceName] = true
		}
		p.both(func(q Queue) { q.ObjectSet(old, op.Object.APIObject) })
	case ObjectGone:
		if old := p.objects[*op.Ref]; old != nil {
			delete(p.objects, *op.Ref)
			p.both(func(q Queue) { q.ObjectGone(old) })
		}
	case Pop:
		return p.pop()
	case Fail, BindPod:
		p.end(op)
	case Hold:
		p.both(func(q Queue) { q.SetHold(op.Open) })
	case Activate:
		var pods []*v1.Pod
		for _, name := range op.Names {
			if pod := p.pods[name]; pod != nil {
				pods = append(pods, pod)
			}
		}
		p.both(func(q Queue) { q.Activate(pods) })
	}
	return ""
}

// podSet refuses what the API server would: a bound pod that changes its node.
func (p *player) podSet(pod *v1.Pod) {
	old := p.pods[pod.Name]
	if old != nil && (old.UID != pod.UID || old.ResourceVersion == pod.ResourceVersion || old.Spec.NodeName != "" && old.Spec.NodeName != pod.Spec.NodeName) {
		return
	}
	p.pods[pod.Name] = pod
	p.both(func(q Queue) { q.PodSet(old, pod) })
}

func (p *player) pop() string {
	uid := p.up.Pop()
	if uid != "" {
		p.flying[uid] = p.nameOf(uid)
	}
	if p.our == nil {
		return ""
	}
	if got := p.our.Pop(); got != uid {
		return fmt.Sprintf("pop: upstream %q, kumiki %q", uid, got)
	}
	if uid == "" {
		return ""
	}
	if up, our := p.up.Size(uid), p.our.Size(uid); up != our {
		return fmt.Sprintf("the size of %s: upstream %v, kumiki %v", uid, up, our)
	}
	return ""
}

func (p *player) nameOf(uid string) string {
	for name, pod := range p.pods {
		if string(pod.UID) == uid {
			return name
		}
	}
	panic(fmt.Sprintf("popped %s, which the API does not have", uid))
}

// end finishes the attempt of the pod in flight with the step's name. Two can
// have it, when a pod was deleted and made again: the one with the smaller UID
// ends.
func (p *player) end(op Op) {
	var uid string
	for u, name := range p.flying {
		if name == op.Name && (uid == "" || u < uid) {
			uid = u
		}
	}
	if uid == "" {
		return
	}
	delete(p.flying, uid)
	now := p.pods[op.Name]
	if op.Kind == BindPod && now != nil && string(now.UID) == uid && now.Spec.NodeName == "" && p.nodes[op.On] != nil {
		p.both(func(q Queue) { q.Done(uid, now) })
		p.podSet(gen.Bind(now, op.On))
		return
	}
	p.both(func(q Queue) { q.Fail(uid, now, Rejection{op.Plugins, op.Pending, op.On}) })
}

// compare looks at every pod's place.
func (p *player) compare() string {
	up := p.up.Places()
	for uid, place := range up {
		if p.before[uid].In != place.In {
			p.visits[place.In]++
		}
	}
	p.before = up
	if p.our == nil {
		return ""
	}
	our := p.our.Places()
	all := make([]string, 0, len(up))
	for uid := range up {
		all = append(all, uid)
	}
	for uid := range our {
		if _, both := up[uid]; !both {
			all = append(all, uid)
		}
	}
	sort.Strings(all)
	for _, uid := range all {
		if up[uid] != our[uid] {
			return fmt.Sprintf("%s: upstream %s, kumiki %s", uid, up[uid], our[uid])
		}
	}
	for _, name := range p.names {
		up, our := p.up.NominatedOn(name), p.our.NominatedOn(name)
		p.nominated += len(up)
		if !slices.Equal(up, our) {
			return fmt.Sprintf("nominated to %s: upstream %v, kumiki %v", name, up, our)
		}
	}
	return p.up.Series().differ(p.our.Series())
}

// Replay plays a history and returns the first difference with the step that
// shows it, or "".
func Replay(h *History, our Make) string {
	p := newPlayer(our)
	defer p.close()
	for i, op := range h.Ops {
		if d := p.step(op); d != "" {
			return fmt.Sprintf("step %d (%s): %s", i, op, d)
		}
	}
	return ""
}
