// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Contender makes schedulers to measure.
type Contender struct {
	Name string
	// New makes one that knows no node and no pod.
	New func() (Subject, error)
}

// Subject is a scheduler without an API server. Nodes come first, then bound pods, then Take, then Place and Retire in turn.
type Subject interface {
	AddNode(*v1.Node)
	AddBound(*v1.Pod)
	// Take readies pods to be placed, outside of what is measured.
	Take([]*v1.Pod)
	// Place brings taken pod number i from pending to seen bound. It returns the node, or an error that says why there is none.
	Place(i int) (Placed, error)
	// Retire tells that the pod is gone that was bound first of those that are there.
	Retire()
	Close()
}

// Placed is where a pod went.
type Placed struct {
	Node string
	// Path is how the nodes were looked at; empty for schedulers that have but one way.
	Path record.Path
}

// KumikiName is the name of kumiki's contender.
const KumikiName = "kumiki"

// Kumiki is the engine with the default profile. classBytes bounds the memory of its classes; 0 is what the program does.
func Kumiki(classBytes int) Contender {
	return kumikiWith(KumikiName, engine.DefaultProfile(v1.DefaultSchedulerName), classBytes)
}

func kumikiWith(name string, profile engine.Profile, classBytes int) Contender {
	return Contender{Name: name, New: func() (Subject, error) {
		return start(engine.Config{
			Seed: 7, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second, ClassBytes: classBytes,
		}), nil
	}}
}

// Hosting returns the engine with the configuration that a function makes, which may have plugins of kube-scheduler's
// framework: pods and nodes keep the objects that they are made of.
func Hosting(name string, config func() (engine.Config, error)) Contender {
	return Contender{Name: name, New: func() (Subject, error) {
		c, err := config()
		if err != nil {
			return nil, err
		}
		k := start(c)
		k.intake.KeepFull()
		return k, nil
	}}
}

func start(c engine.Config) *kumiki {
	k := &kumiki{intake: convert.NewIntake(), engine: engine.New(c)}
	k.engine.Step(engine.Tick{Now: record.Second})
	return k
}

type kumiki struct {
	engine *engine.Engine
	intake *convert.Intake
	synced bool
	taken  []*cluster.Pod
	bound  queue[record.PodRef]
}

func (k *kumiki) AddNode(n *v1.Node) { k.engine.Step(engine.NodeSet{Node: k.intake.Node(n)}) }

func (k *kumiki) AddBound(p *v1.Pod) {
	own := k.intake.Pod(p)
	k.engine.Step(engine.PodSet{Pod: own})
	k.bound.push(own.Ref())
}

func (k *kumiki) Take(pods []*v1.Pod) {
	if !k.synced {
		k.synced = true
		k.engine.Step(engine.Synced{})
	}
	k.taken = k.taken[:0]
	for _, p := range pods {
		k.taken = append(k.taken, k.intake.Pod(p))
	}
}

func (k *kumiki) Place(i int) (Placed, error) {
	p := k.taken[i]
	k.engine.Step(engine.PodSet{Pod: p})
	var bind engine.Bind
	var out Placed
	var message string
	for _, f := range k.engine.Step(engine.Cycle{}) {
		switch f := f.(type) {
		case engine.Bind:
			bind = f
		case engine.Decided:
			out.Path, message = f.Decision.Path, f.Decision.Message
		}
	}
	if bind.Node == "" || bind.Pod.UID != string(p.UID) {
		return Placed{}, fmt.Errorf("kumiki binds no pod %s: %s", p.Ref().Key(), message)
	}
	k.engine.Step(engine.BindDone{Pod: bind.Pod, Node: bind.Node})
	seen := *p
	seen.NodeName = bind.Node
	k.engine.Step(engine.PodSet{Pod: &seen})
	k.bound.push(bind.Pod)
	out.Node = bind.Node
	return out, nil
}

func (k *kumiki) Retire() { k.engine.Step(engine.PodGone{Pod: k.bound.pop()}) }

func (k *kumiki) Close() {}

// queue is first in, first out.
type queue[T any] struct {
	items []T
	gone  int // items before this one were taken
}

func (q *queue[T]) push(x T) { q.items = append(q.items, x) }

func (q *queue[T]) pop() T {
	x := q.items[q.gone]
	q.gone++
	if q.gone > len(q.items)/2 {
		q.items = q.items[:copy(q.items, q.items[q.gone:])]
		q.gone = 0
	}
	return x
}
