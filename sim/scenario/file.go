// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

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
	Storage    []Storage     `yaml:"storage"`
	Workloads  []Workload    `yaml:"workloads"`
	Budgets    []Budget      `yaml:"budgets"`
	Events     []Event       `yaml:"events"`
	Assertions []string      `yaml:"assertions"`
	Inputs     []Input       `yaml:"traces"`

	// Traces are added by OpenTraces, and by the caller, after reading.
	Traces []Trace
	// KeepFull keeps the objects of pods and nodes in their records, for plugins of kube-scheduler's framework.
	KeepFull bool
	// Skipped says which rows OpenTraces left out, and why.
	Skipped []string
}

// Input is a trace that a scenario names or describes: one of its other fields is set.
type Input struct {
	At_       position
	CSV       *CSV       `yaml:"csv"`
	HeavyTail *HeavyTail `yaml:"heavyTail"`
}

// Names returns the names of the files that a scenario names: configurations and traces.
func (f *File) Names() (list []string) {
	for _, s := range f.Schedulers {
		if s.Config != "" {
			list = append(list, s.Config)
		}
	}
	for _, in := range f.Inputs {
		if in.CSV != nil {
			list = append(list, in.CSV.File)
		}
	}
	return list
}

// OpenTraces reads the traces that a scenario names. dir is that of its file.
func (f *File) OpenTraces(dir string) error {
	for _, in := range f.Inputs {
		if in.HeavyTail != nil {
			f.Traces = append(f.Traces, in.HeavyTail)
			continue
		}
		rows, err := in.CSV.open(dir)
		if err != nil {
			return fmt.Errorf("traces: %w", err)
		}
		for _, why := range rows.SortedSkips() {
			f.Skipped = append(f.Skipped, in.CSV.File+" is without "+why)
		}
		f.Traces = append(f.Traces, rows)
		if f.Until == 0 {
			f.Until = 2*rows.Length() + time.Hour
		}
	}
	return nil
}

// Model overrides the values of sim.DefaultModel that are set.
type Model struct {
	Decision    *time.Duration `yaml:"decision"`
	Watch       *sim.Durations `yaml:"watch"`
	Sight       *sim.Durations `yaml:"sight"`
	Call        *sim.Durations `yaml:"call"`
	Answer      *sim.Durations `yaml:"answer"`
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
	Volume      *sim.Durations `yaml:"volume"`
	Decisions   *Decisions     `yaml:"decisions"`
	Calls       []Call         `yaml:"calls"`
	Loads       []Load         `yaml:"loads"`
	// Nodes is the number of nodes of the cluster that the model was fitted to; 0 if it is unknown.
	Nodes *int `yaml:"nodes"`
}

// Decisions are the durations of an attempt by the path of its search.
type Decisions struct {
	Ranked  *time.Duration `yaml:"ranked"`
	Grouped *time.Duration `yaml:"grouped"`
	Scanned *time.Duration `yaml:"scanned"`
}

// Call is the latency of binds while at most InFlight are on the way.
type Call struct {
	At_      position
	InFlight int           `yaml:"inFlight"`
	Latency  sim.Durations `yaml:"latency"`
}

// Load is the latency of binds while at most Sent were sent in the last 100 ms.
type Load struct {
	At_     position
	Sent    int           `yaml:"sent"`
	Latency sim.Durations `yaml:"latency"`
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

// Storage is a class of volumes.
type Storage struct {
	At_       position
	Name      string `yaml:"name"`
	Immediate bool   `yaml:"immediate"`
	// Topology is the label of nodes whose value a volume shares with the nodes that can reach it; empty for all nodes.
	Topology string `yaml:"topology"`
	// PerNode is how many volumes of Size each node with the Labels has, which then are the only ones of the class.
	PerNode int                   `yaml:"perNode"`
	Size    *apiresource.Quantity `yaml:"size"`
	Labels  map[string]string     `yaml:"labels"` // key -> value
}

// Claim is a claim of each pod of a workload.
type Claim struct {
	At_   position
	Name  string                `yaml:"name"`
	Class string                `yaml:"class"`
	Size  *apiresource.Quantity `yaml:"size"`
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
	Claims      []Claim           `yaml:"claims"`
	// Parallel is for StatefulSets: all pods are created at once.
	Parallel bool `yaml:"parallel"`
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
	Kill        *Freeze       `yaml:"killScheduler"`
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

// Scale changes the size of the units of a workload of ReplicaSets or StatefulSets.
type Scale struct {
	Workload string `yaml:"workload"`
	Size     int    `yaml:"size"`
}

// Freeze stops the watch of a scheduler, or kills it, for a while.
type Freeze struct {
	Scheduler string        `yaml:"scheduler"` // empty for all
	For       time.Duration `yaml:"for"`
	// Relist has the watch lost and lists read: of each object, the scheduler sees only the newest version.
	Relist bool `yaml:"relist"`
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
