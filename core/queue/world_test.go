// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// epoch is the time at which stories start, a multiple of every period of the queue.
const epoch = 1_200_000_000 * record.Second

// byPriority is a QueueSort.
type byPriority struct{}

func (byPriority) Name() string                  { return "PrioritySort" }
func (byPriority) Before(a, b *cluster.Pod) bool { return a.Spec.Priority > b.Spec.Priority }

// namedGate holds pods that have a scheduling gate of its name, or a label of its name with the value shut.
type namedGate string

func (g namedGate) Name() string { return string(g) }

func (g namedGate) Gated(_ cluster.Snapshot, p *cluster.Pod) (string, bool) {
	if slices.Contains(p.Spec.Gates, string(g)) || p.Spec.Labels[string(g)] == "shut" {
		return "waits for " + string(g), false
	}
	return "", true
}

// openable is a gate that holds no pod any more once it is opened.
type openable struct {
	namedGate
	opened map[string]bool // gate -> true
}

func (g openable) Gated(s cluster.Snapshot, p *cluster.Pod) (string, bool) {
	if g.opened[g.Name()] {
		return "", true
	}
	return g.namedGate.Gated(s, p)
}

// quorum holds gangs until there are as many pods as they say, or, if they say nothing, until none came for five
// seconds, thirty at most. placed are pods of the gang that have a place.
type quorum struct {
	placed map[string]int // gang -> pods
	now    func() record.Time
	// apart are the groups whose pods are scheduled one by one, gates what may hold a member.
	apart map[string]bool // gang -> true
	gates []plugin.Gate
}

func (g *quorum) Apart(key cluster.GangKey) bool { return g.apart[key.Name] }

func (g *quorum) Admit(u *Unit) (a Admission) {
	m := u.Pod().Gang
	ready := 0
	for _, p := range u.Members {
		open := true
		for _, gate := range g.gates {
			if _, ok := gate.Gated(cluster.Snapshot{}, p); !ok {
				open, a.Members = false, append(a.Members, gate.Name())
			}
		}
		ready += int(when(open))
	}
	switch quiet := min(u.Joined+5*record.Second, u.First+30*record.Second); {
	case m.Bad != "":
		return Admission{Gate: "Gang", Reason: m.Bad}
	case g.apart[m.Key.Name]:
		return Admission{}
	case m.Size > 0:
		if have := ready + g.placed[u.Gang.Name]; have < m.Size {
			a.Gate, a.Reason = "Gang", fmt.Sprintf("%d of %d pods", have, m.Size)
		}
	case g.now() < quiet:
		return Admission{Gate: "Gang", Reason: "more may come", Again: quiet}
	}
	return a
}

func (g *quorum) Priority(u *Unit) (priority int32, declared bool) {
	least := u.Members[0].Spec.Priority
	for _, p := range u.Members {
		least = min(least, p.Spec.Priority)
	}
	return least, false
}

func (g *quorum) Extra(u *Unit) bool {
	m := u.Pod().Gang
	return m.Desired > 0 && g.placed[u.Gang.Name] >= m.Size
}

// hints are what plugins of stories say of a change.
var hints = map[string]func(*cluster.Pod, plugin.Change) plugin.Hint{ // word in a story -> hint
	"":      nil,
	"queue": func(*cluster.Pod, plugin.Change) plugin.Hint { return plugin.QueueHint },
	"skip":  func(*cluster.Pod, plugin.Change) plugin.Hint { return plugin.SkipHint },
	"panic": func(*cluster.Pod, plugin.Change) plugin.Hint { panic("a hint that breaks") },
	"fits": func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
		return when(ch.NewNode != nil && ch.NewNode.Allocatable.MilliCPU >= p.Spec.Request.MilliCPU)
	},
	"name": func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
		return when(ch.NewNode != nil && ch.NewNode.Name == p.Name)
	},
	"own": func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
		return when(ch.NewPod != nil && ch.NewPod.UID == p.UID)
	},
}

// alikeHints are those of hints that read of a pod only what pods that are alike have in common.
// word in a story -> it does
var alikeHints = map[string]bool{"queue": true, "skip": true, "panic": true, "fits": true, "own": true}

func when(queue bool) plugin.Hint {
	if queue {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

// actions are all actions by name.
var actions = func() map[string]plugin.Action { // name -> action
	byName := map[string]plugin.Action{"All": plugin.All, "Update": plugin.Update}
	for a := plugin.Add; a < plugin.All; a <<= 1 {
		byName[a.String()] = a
	}
	return byName
}()

// parseEvent reads Resource/Action, or * for the wildcard.
func parseEvent(s string) (plugin.Event, error) {
	if s == "*" {
		return plugin.Event{Resource: plugin.Wildcard, Action: plugin.All}, nil
	}
	resource, names, _ := strings.Cut(s, "/")
	e := plugin.Event{Resource: plugin.Resource(resource)}
	for _, name := range strings.Split(names, "+") {
		a, ok := actions[name]
		if !ok {
			return e, fmt.Errorf("event %q: unknown action %q", s, name)
		}
		e.Action |= a
	}
	return e, nil
}

// attributes are key=value words of a story.
type attributes map[string]string // key -> value

func parseAttributes(words []string) attributes {
	a := attributes{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		a[k] = v
	}
	return a
}

func (a attributes) number(key string) int64 {
	if a[key] == "" {
		return 0
	}
	n, err := strconv.ParseInt(a[key], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("attribute %s=%q is no number", key, a[key]))
	}
	return n
}

func (a attributes) list(key string) []string {
	if a[key] == "" {
		return nil
	}
	return strings.Split(a[key], "+")
}

// specs are the specs of all pods so far, as an intake shares them.
var specs = map[string]*cluster.PodSpec{} // the spec as text -> the same

// pod makes version number rv of a pod with these attributes.
func (a attributes) pod(name string, rv int) *cluster.Pod {
	spec := &cluster.PodSpec{
		SchedulerName: a["scheduler"],
		Priority:      int32(a.number("prio")),
		Gates:         a.list("gates"),
		Tolerations:   make([]v1.Toleration, a.number("tolerations")),
	}
	spec.Request.MilliCPU = a.number("cpu")
	spec.Held = spec.Request
	for _, l := range a.list("labels") {
		if spec.Labels == nil {
			spec.Labels = map[string]string{}
		}
		k, v, _ := strings.Cut(l, ":")
		spec.Labels[k] = v
	}
	var gang *cluster.GangMark
	if a["gang"] != "" {
		gang = &cluster.GangMark{
			Key:  cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: a["gang"]},
			Size: int(a.number("size")), Desired: int(a.number("all")), Bad: strings.ReplaceAll(a["bad"], "_", " "),
		}
	}
	text := fmt.Sprintf("%+v", *spec)
	if known := specs[text]; known != nil {
		spec = known
	}
	specs[text] = spec
	return &cluster.Pod{
		Gang: gang, Created: record.Time(a.number("created")) * record.Second,
		UID: cluster.UID("uid-" + name), Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(rv),
		Generation: a.number("generation"), NodeName: a["on"], Nominated: a["nominated"], Spec: spec,
	}
}
