// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Kind of a step.
type Kind string

// The kinds of steps.
const (
	// NodeSet adds or updates a node.
	NodeSet Kind = "node-set"
	// NodeGone deletes one.
	NodeGone Kind = "node-gone"
	// PodSet adds or updates a pod: pending, or bound by someone else.
	PodSet Kind = "pod-set"
	// PodGone deletes one.
	PodGone Kind = "pod-gone"
	// Pop takes the next pod to schedule, if one is ready.
	Pop Kind = "pop"
	// Fail ends an attempt: rejected by Plugins, or by an error when there are none.
	Fail Kind = "fail"
	// BindPod ends an attempt with the pod on Node.
	BindPod Kind = "bind"
	// Activate asks for pods whatever they wait for.
	Activate Kind = "activate"
	// ObjectSet adds or updates an object besides nodes and pods, ObjectGone deletes one.
	ObjectSet  Kind = "object-set"
	ObjectGone Kind = "object-gone"
	// Hold opens or closes HoldGate.
	Hold Kind = "hold"
	// Tick moves the clock.
	Tick Kind = "tick"
)

// Op is one step of a history.
type Op struct {
	Kind Kind     `json:"kind"`
	Node *v1.Node `json:"node,omitempty"`
	Pod  *v1.Pod  `json:"pod,omitempty"`
	// Object of a step about one, Ref of its deletion.
	Object *scenario.Object    `json:"object,omitempty"`
	Ref    *scenario.ObjectRef `json:"ref,omitempty"`
	// Name of the node or pod for the steps that carry no object.
	Name string `json:"name,omitempty"`
	// On is the node of a bind, or the one promised with a failure.
	On      string   `json:"on,omitempty"`
	Plugins []string `json:"plugins,omitempty"`
	Pending []string `json:"pending,omitempty"`
	Names   []string `json:"names,omitempty"`
	Open    bool     `json:"open,omitempty"`
	// Millis the clock moves before the step.
	Millis int64 `json:"millis,omitempty"`
	// OnTheDot moves the clock not at all, or with Millis to the next half minute that
	// is at least so far away: for what happens at the very end of a period.
	OnTheDot bool `json:"onTheDot,omitempty"`
}

// String is the step in a few words.
func (o Op) String() string {
	switch o.Kind {
	case NodeSet:
		return fmt.Sprintf("%s %s", o.Kind, o.Node.Name)
	case ObjectSet:
		return fmt.Sprintf("%s %v", o.Kind, o.Object.Key())
	case ObjectGone:
		return fmt.Sprintf("%s %v", o.Kind, *o.Ref)
	case PodSet:
		return fmt.Sprintf("%s %s on %q", o.Kind, o.Pod.Name, o.Pod.Spec.NodeName)
	case Tick:
		return fmt.Sprintf("%s %s", o.Kind, time.Duration(o.Millis)*time.Millisecond)
	case Fail:
		return fmt.Sprintf("%s %s by %v pending %v promised %q", o.Kind, o.Name, o.Plugins, o.Pending, o.On)
	case Hold:
		return fmt.Sprintf("%s open %v", o.Kind, o.Open)
	case BindPod:
		return fmt.Sprintf("%s %s to %s", o.Kind, o.Name, o.On)
	case Activate:
		return fmt.Sprintf("%s %v", o.Kind, o.Names)
	}
	return fmt.Sprintf("%s %s", o.Kind, o.Name)
}

// History is a played list of steps, as kept under testdata/regressions.
type History struct {
	Name string `json:"name"`
	Ops  []Op   `json:"ops"`
}

// Load reads a history; an unknown field is an error.
func Load(path string) (*History, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	var h History
	if err := yaml.UnmarshalStrict(data, &h); err != nil {
		return nil, fmt.Errorf("parse history %s: %w", path, err)
	}
	return &h, nil
}

// Save writes the history as YAML.
func (h *History) Save(path string) error {
	data, err := scenario.Text(h)
	if err != nil {
		return fmt.Errorf("encode history %q: %w", h.Name, err)
	}
	return os.WriteFile(path, data, 0o644)
}
