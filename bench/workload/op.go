// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Op is one operation of a plan, its parameters put in. Operations run one after the other.
type Op interface {
	// Opcode is its name in the file.
	Opcode() string
}

// Template is a manifest with where it was read: plain YAML, or a text/template over .Index, .Count and its parameters.
type Template struct {
	Path string
	Text string
	// Params are the templateParams of the operation: name in the template -> value, as in Param.
	Params map[string]any
}

// The operations.
type (
	// CreateNodes creates Count nodes from a template, or default ones, and changes them by at most one of the strategies.
	CreateNodes struct {
		Count       int
		Template    *Template
		Allocatable *NodeAllocatable
		Label       *NodeLabel
		UniqueLabel *NodeUniqueLabel
		Features    []string // that their status declares; none for those of the template
	}

	// CreateNamespaces creates Prefix-0 to Prefix-(Count-1).
	CreateNamespaces struct {
		Prefix   string
		Count    int
		Template *Template
	}

	// CreatePods creates Count pods and waits until all are scheduled, unless SkipWait. With a Steady duration above 0 it
	// deletes each pod that is scheduled and creates another, for that long.
	CreatePods struct {
		Count          int
		Steady         time.Duration
		CollectMetrics bool
		// Namespace is empty for one of the operation's own, namespace-N with N its position in the plan.
		Namespace string
		Template  *Template // nil for the default pod
		SkipWait  bool
		// SignatureBatch is how many pods in a row have the same value of the label signature, by which pods of a
		// template differ; 0 for no such label. Pods without a template have none.
		SignatureBatch int
		// Volume and Claim, both or neither, are made and bound to each other for each pod before it is created. The claim of pod
		// i is pvc-i, as upstream's: templates of other operations in the namespace name it.
		Volume, Claim *Template
	}

	// CreatePodSets repeats CreatePods in the namespaces NamespacePrefix-0 to NamespacePrefix-(Count-1).
	CreatePodSets struct {
		Count           int
		NamespacePrefix string
		Pods            CreatePods
	}

	// DeletePods deletes the pods of a namespace that have the labels, PerSecond of them a second, or all at once.
	DeletePods struct {
		Namespace string
		Labels    map[string]string
		PerSecond int
		SkipWait  bool
	}

	// Churn creates objects from the templates in turn, one round each Interval, in the background until the workload ends.
	Churn struct {
		// Recreate creates for Number rounds and then deletes for as many, and so on; else it creates Number rounds,
		// or without end if Number is 0.
		Recreate  bool
		Number    int
		Interval  time.Duration
		Namespace string // empty for one of the operation's own
		Templates []Template
	}

	// CreateAny creates Count objects from a template.
	CreateAny struct {
		Namespace string // empty for objects of the cluster
		Template  Template
		Count     int
	}

	// UpdateAny updates Count objects from a template, PerSecond of them a second, or one after the other.
	UpdateAny struct {
		Namespace    string
		Template     Template
		Count        int
		PerSecond    int
		Subresources []string // empty for the object itself
	}

	// Barrier waits until the pods have reached a stage.
	Barrier struct {
		Namespaces []string // empty for all
		Labels     map[string]string
		Stage      Stage
	}

	// Sleep waits.
	Sleep struct{ Duration time.Duration }

	// StartCollectingMetrics begins to measure; the throughput is that of pods of the namespaces that have the labels.
	StartCollectingMetrics struct {
		Name       string
		Namespaces []string
		Labels     map[string]string
	}

	// StopCollectingMetrics ends what StartCollectingMetrics began.
	StopCollectingMetrics struct{}

	// StartCollectingProfile begins a CPU profile of the scheduler.
	StartCollectingProfile struct {
		// Path is where the profile is written, below the directory of profiles of the run.
		Path string
	}

	// StopCollectingProfile ends what StartCollectingProfile began.
	StopCollectingProfile struct{}

	// CreateResourceClaims creates Count claims from a template.
	CreateResourceClaims struct {
		Count     int
		Namespace string
		Template  Template
	}

	// CreateResourceDriver publishes ClaimsPerNode devices of a driver on each node whose name matches the pattern
	// (scheduler_perf up to 1.36).
	CreateResourceDriver struct {
		Driver        string
		ClaimsPerNode int
		Nodes         string // as path.Match reads it
	}

	// AllocResourceClaims allocates the claims of a namespace, or of all, without pods.
	AllocResourceClaims struct{ Namespace string }

	// CreatePodGroups creates Count pod groups from a template.
	CreatePodGroups struct {
		Count     int
		Namespace string
		Template  Template
	}

	// WaitForPodGroups waits until all pod groups of the namespaces are scheduled (not in scheduler_perf).
	WaitForPodGroups struct{ Namespaces []string }
)

// Stage is how far a pod has come.
type Stage string

// The stages.
const (
	Scheduled Stage = "Scheduled" // it has a node
	Attempted Stage = "Attempted" // it has a node, or a condition that says why not
)

// NodeAllocatable adds to what nodes offer (their capacity, when the template has no allocatable), and sets CSI drivers with
// their volume limits.
type NodeAllocatable struct {
	Allocatable    map[string]string
	CSIAllocatable map[string]int32           // CSI driver -> volumes
	Migrated       map[string]map[string]bool // CSI driver -> in-tree plugins that it stands in for
}

// NodeLabel gives each node a label, with the values in turn.
type NodeLabel struct {
	Key    string
	Values []string
}

// NodeUniqueLabel gives each node a label with a value of its own.
type NodeUniqueLabel struct{ Key string }

// Opcode is createNodes.
func (*CreateNodes) Opcode() string { return "createNodes" }

// Opcode is createNamespaces.
func (*CreateNamespaces) Opcode() string { return "createNamespaces" }

// Opcode is createPods.
func (*CreatePods) Opcode() string { return "createPods" }

// Opcode is createPodSets.
func (*CreatePodSets) Opcode() string { return "createPodSets" }

// Opcode is deletePods.
func (*DeletePods) Opcode() string { return "deletePods" }

// Opcode is churn.
func (*Churn) Opcode() string { return "churn" }

// Opcode is createAny.
func (*CreateAny) Opcode() string { return "createAny" }

// Opcode is updateAny.
func (*UpdateAny) Opcode() string { return "updateAny" }

// Opcode is barrier.
func (*Barrier) Opcode() string { return "barrier" }

// Opcode is sleep.
func (*Sleep) Opcode() string { return "sleep" }

// Opcode is startCollectingMetrics.
func (*StartCollectingMetrics) Opcode() string { return "startCollectingMetrics" }

// Opcode is stopCollectingMetrics.
func (*StopCollectingMetrics) Opcode() string { return "stopCollectingMetrics" }

// Opcode is startCollectingProfile.
func (*StartCollectingProfile) Opcode() string { return "startCollectingProfile" }

// Opcode is stopCollectingProfile.
func (*StopCollectingProfile) Opcode() string { return "stopCollectingProfile" }

// Opcode is createResourceClaims.
func (*CreateResourceClaims) Opcode() string { return "createResourceClaims" }

// Opcode is createResourceDriver.
func (*CreateResourceDriver) Opcode() string { return "createResourceDriver" }

// Opcode is allocResourceClaims.
func (*AllocResourceClaims) Opcode() string { return "allocResourceClaims" }

// Opcode is createPodGroups.
func (*CreatePodGroups) Opcode() string { return "createPodGroups" }

// Opcode is waitForPodGroups.
func (*WaitForPodGroups) Opcode() string { return "waitForPodGroups" }
