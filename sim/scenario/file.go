// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// File is a scenario file. The tags are the names of the fields in files.
type File struct {
	Name       string        `yaml:"name"`
	Until      time.Duration `yaml:"until"`
	Sample     time.Duration `yaml:"sample"`
	Seeds      string        `yaml:"seeds"`
	Model      Model         `yaml:"model"`
	Schedulers []Scheduler   `yaml:"schedulers"`
	Nodes      []NodeGroup   `yaml:"nodes"`
	Workloads  []Workload    `yaml:"workloads"`
	Budgets    []Budget      `yaml:"budgets"`
	Events     []Event       `yaml:"events"`
	Assertions []string      `yaml:"assertions"`

	// Traces are added by the caller, after reading.
	Traces []Trace
}

// Model overrides the values of sim.DefaultModel that are set.
type Model struct {
	Decision    *time.Duration `yaml:"decision"`
	Watch       *sim.Durations `yaml:"watch"`
	Call        *sim.Durations `yaml:"call"`
	InFlight    *int           `yaml:"inFlight"`
	FailedBinds *Share         `yaml:"failedBinds"`
	LostAnswers *Share         `yaml:"lostAnswers"`
	Reread      *time.Duration `yaml:"reread"`
	Kubelet     *sim.Durations `yaml:"kubelet"`
	Start       *sim.Durations `yaml:"start"`
	Stop        *sim.Durations `yaml:"stop"`
	Controller  *time.Duration `yaml:"controller"`
	Detect      *time.Duration `yaml:"detect"`
	Remove      *time.Duration `yaml:"remove"`
}

// Scheduler is a scheduler, or several copies of one.
type Scheduler struct {
	At_    position
	Name   string `yaml:"name"`
	Config string `yaml:"config"` // path, relative to the scenario file; empty for the default configuration
	Copies int    `yaml:"copies"`
	// Split gives each copy its share of the pending pods. Otherwise every copy tries every pod.
	Split bool `yaml:"split"`
}

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	At_      position
	Name     string            `yaml:"name"`
	Count    int               `yaml:"count"`
	Capacity v1.ResourceList   `yaml:"capacity"`
	Labels   map[string]string `yaml:"labels"` // key -> value
	Taints   []v1.Taint        `yaml:"taints"`
	// Zones spreads the nodes over so many values of topology.kubernetes.io/zone, zone-0, zone-1, …
	Zones int `yaml:"zones"`
}

// Workload creates pods.
type Workload struct {
	At_         position
	Name        string            `yaml:"name"`
	Kind        string            `yaml:"kind"`
	Size        int               `yaml:"size"`
	Completions int               `yaml:"completions"`
	Count       *int              `yaml:"count"`
	First       time.Duration     `yaml:"first"`
	Every       sim.Durations     `yaml:"every"`
	Work        sim.Durations     `yaml:"work"`
	FailRate    Share             `yaml:"failRate"`
	Retries     *int              `yaml:"retries"`
	Requests    v1.ResourceList   `yaml:"requests"`
	Priority    *int32            `yaml:"priority"`
	Scheduler   string            `yaml:"schedulerName"`
	Labels      map[string]string `yaml:"labels"` // key -> value
	Spec        v1.PodSpec        `yaml:"spec"`
}

// Budget is a PodDisruptionBudget for the pods with the labels.
type Budget struct {
	At_            position
	Name           string            `yaml:"name"`
	Labels         map[string]string `yaml:"labels"` // key -> value
	MinAvailable   *int32            `yaml:"minAvailable"`
	MaxUnavailable *int32            `yaml:"maxUnavailable"`
}

// Event is something that happens at a time: exactly one of its other fields is set.
type Event struct {
	At_         position
	At          time.Duration `yaml:"at"`
	FailNodes   *Selection    `yaml:"failNodes"`
	DrainNodes  *Selection    `yaml:"drainNodes"`
	RemoveNodes *Selection    `yaml:"removeNodes"`
	TaintNodes  *TaintNodes   `yaml:"taintNodes"`
	AddNodes    *AddNodes     `yaml:"addNodes"`
	Scale       *Scale        `yaml:"scale"`
	FreezeWatch *Freeze       `yaml:"freezeWatch"`
	FailCalls   *Outage       `yaml:"failCalls"`
}

// Selection chooses nodes: those with the labels, the first Count of them in the order in which they joined.
type Selection struct {
	Labels map[string]string `yaml:"labels"` // key -> value
	Count  int               `yaml:"count"`  // 0 for all
}

// TaintNodes adds a taint, for a while.
type TaintNodes struct {
	Nodes Selection     `yaml:"nodes"`
	Taint v1.Taint      `yaml:"taint"`
	For   time.Duration `yaml:"for"` // 0 for without end
}

// AddNodes adds nodes to a group.
type AddNodes struct {
	Group string `yaml:"group"`
	Count int    `yaml:"count"`
}

// Scale changes the size of the units of a workload of ReplicaSets.
type Scale struct {
	Workload string `yaml:"workload"`
	Size     int    `yaml:"size"`
}

// Freeze stops the watch of a scheduler.
type Freeze struct {
	Scheduler string        `yaml:"scheduler"` // empty for all
	For       time.Duration `yaml:"for"`
}

// Outage makes all binds fail.
type Outage struct {
	For time.Duration `yaml:"for"`
}

// Read reads a scenario file, and checks it.
func Read(text []byte) (*File, error) {
	f := &File{}
	if err := parse(text, f); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}
