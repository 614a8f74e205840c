// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"unique"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The requests that scoring assumes for a container without requests, so that such pods do not pile up on one node
// (upstream: pkg/scheduler/util/pod_resources.go).
const (
	DefaultMilliCPU int64 = 100
	DefaultMemory   int64 = 200 << 20
)

// UID identifies a pod for all time.
type UID string

// Pod is a compact, immutable record of one version of a pod object.
type Pod struct {
	UID             UID
	Namespace, Name string
	ResourceVersion string
	Generation      int64
	// NodeName is the node to which the API server has it bound; empty while pending.
	NodeName string
	// Nominated is status.nominatedNodeName.
	Nominated string
	// Terminating pods hold their capacity until they are gone.
	Terminating bool
	// GoneBy is when a terminating pod should be gone: the end of its grace period (metadata.deletionTimestamp); 0
	// for a pod that does not terminate.
	GoneBy record.Time `json:",omitempty"`
	// DeletedAt is when its deletion was requested, GoneBy less the grace period. Both are times of the API server's
	// clock. 0 if the API object does not say how long the grace period is.
	DeletedAt record.Time `json:",omitempty"`
	// Preempted: a terminating pod goes because a scheduler evicted it for another pod (condition DisruptionTarget,
	// reason PreemptionByScheduler).
	Preempted bool `json:",omitempty"`
	// EvictionPending reports that a pod which is not deleted yet has the same condition: a scheduler was about to
	// evict it.
	EvictionPending bool `json:"Doomed,omitempty"`
	Created         record.Time
	// Start is status.startTime, 0 when unset.
	Start record.Time
	// RunsAtMost is how long after Start the kubelet ends the pod (spec.activeDeadlineSeconds), 0 for without limit.
	RunsAtMost record.Time `json:",omitempty"`
	// Expected is how long after Start the pod says that it ends (annotation), 0 where it does not say so.
	Expected record.Time `json:",omitempty"`
	// EvictableForGangs: the pod may be evicted so that a gang of its priority or more can start, because it declares
	// that by annotation or is of a PriorityClass that the configuration names.
	EvictableForGangs bool `json:",omitempty"`
	// Owned: a controller would create the pod again.
	Owned bool
	// OfNode: the pod belongs to its node, as a DaemonSet's pod or a static pod (of which the API server has a
	// mirror). Evicting it gains nothing: it is created again on the same node.
	OfNode bool `json:",omitempty"`
	// Owner identifies the controller that creates the pod again, the same for all its pods; 0 if there is none.
	Owner uint64 `json:",omitempty"`
	// ClaimsHash covers the generated resource claims in the status.
	ClaimsHash uint64
	// Claims are the generated resource claims in the status; nil when there are none.
	Claims *PodClaims
	// Condition is the PodScheduled condition as last observed, so that an unchanged one is not written again.
	Condition Condition
	// UnschedulableSince is when the status of that condition became False, if its reason is Unschedulable; else 0.
	UnschedulableSince record.Time `json:",omitempty"`
	// Gang is the gang that the pod declares; nil for a pod in no gang.
	Gang *GangMark `json:",omitempty"`
	// Bound is the mark that the binding of a gang's member left on it; nil for other pods, and while pending.
	Bound *BoundMark `json:",omitempty"`
	// Spec is shared by pods with equal specs; never nil.
	Spec *PodSpec
	// Full is the object that this record was made of; nil unless Intake.KeepFull was called. Only code that is not
	// native reads it. It must not be changed.
	Full *v1.Pod `json:"-"`
	// Limits are the limits of the pod as text, for a metric of kube, which alone sets and reads them.
	Limits unique.Handle[string] `json:"-"`
}

// PodClaims are the names of the resource claims that were generated for a pod.
type PodClaims struct {
	Statuses []v1.PodResourceClaimStatus
	Extended *v1.PodExtendedResourceClaimStatus
}

// Condition is PodScheduled=False as the API server holds it; empty if there is none.
type Condition struct {
	Reason, Message string
	Generation      int64
}

// Ref returns the pod's name in records.
func (p *Pod) Ref() record.PodRef {
	return record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

// Key returns namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// PodSpec is everything that filtering, scoring and accounting read of a pod besides its names. Pods of one template
// share one PodSpec, so that results for it are computed once. Immutable.
type PodSpec struct {
	// Alike is this spec reduced to what node-local filters and scorers may read; the same pointer for all pods that
	// they cannot distinguish, so that their results are cached once for all of them. Set by Intake.Share.
	Alike *PodSpec `json:"-"`
	// WithoutRequests is the equivalence class of specs that differ only in requests: Alike without amounts of
	// resources; the same pointer for all specs of the class. Set by Intake.Share on specs that are their own Alike.
	WithoutRequests *PodSpec `json:"-"`

	SchedulerName string
	Priority      int32
	// NeverPreempts is preemptionPolicy Never.
	NeverPreempts bool
	Labels        map[string]string // label key -> value
	// NodeName is the node that a pending pod requires; only Intake.PendingPod sets it.
	NodeName     string
	NodeSelector map[string]string // label key -> wanted value; nil when the field is absent
	Required     *v1.NodeSelector  // required node affinity
	Preferred    []v1.PreferredSchedulingTerm
	Tolerations  []v1.Toleration
	Ports        []HostPort
	Gates        []string
	// Images are the normalised images of init containers, containers and image volumes, in that order, repeats
	// kept: ImageLocality counts each container.
	Images []string
	// Controller is the controlling owner, if it is of a kind whose selector default spreading reads
	// (ReplicationController, ReplicaSet, StatefulSet); zero otherwise.
	Controller Controller
	Spread     []v1.TopologySpreadConstraint
	// PodAffinity and PodAntiAffinity are as in the pod.
	PodAffinity     *v1.PodAffinity
	PodAntiAffinity *v1.PodAntiAffinity
	// Volumes are the volumes that filters read, as ordered in the pod; claims, generic ephemeral volumes (without
	// their template), and the disks of in-tree and CSI drivers (without secret references).
	Volumes []v1.Volume
	// Devices is what the pod requests of device drivers; nil if it cannot request anything.
	Devices *Devices
	// Features are the declared features that a node must have to run the pod, sorted; FeaturesErr is why they cannot
	// be determined (upstream: component-helpers/nodedeclaredfeatures).
	Features    []string
	FeaturesErr string

	// Request is what the pod requests before it runs: max(sum of containers and sidecars, each init phase),
	// pod-level resources over that, plus overhead.
	Request resource.Amounts
	// Held is what the pod holds on its node: Request, with containers under in-place resize at the maximum of
	// desired, allocated and actual (KEP-1287); an infeasible desired amount does not count.
	Held resource.Amounts
	// HeldNonZero is Held with the defaults above for containers without requests: CPU in thousandths, memory in
	// bytes. Scoring sums it over the pods of a node.
	HeldNonZero [2]int64
	// Scored is the pod's own request as NodeResourcesFit scores it: that of its containers plus overhead. It ignores
	// pod-level resources and in-place resize: upstream's scorer is made without those two feature gates
	// (noderesources/fit.go, NewFit), and its filter and the sums over nodes are made with them.
	Scored resource.Amounts
	// ScoreNonZero is CPU and memory of Scored with the defaults above for containers without requests.
	ScoreNonZero [2]int64
}

// Controller identifies a controlling owner.
type Controller struct{ APIVersion, Kind, Name string }

// Devices is the part of a pod that requests devices: by resource claims, or by extended resources, which device
// classes may back.
type Devices struct {
	Claims []v1.PodResourceClaim
	// Init and Main are the init containers and the containers, trimmed to name, restart policy and resources.
	Init, Main []v1.Container
}

// EphemeralClaim returns the name of the claim that is created for a generic ephemeral volume of a pod.
func (p *Pod) EphemeralClaim(volume string) string { return p.Name + "-" + volume }

// HostPort is one port of the node that a pod uses.
type HostPort struct {
	IP       string // "0.0.0.0" if the pod has none
	Protocol v1.Protocol
	Port     int32
}

// Conflicts reports whether pods with these two ports cannot share a node: same port and protocol, and the same
// address, or one of them all addresses.
func (a HostPort) Conflicts(b HostPort) bool {
	return a.Port == b.Port && a.Protocol == b.Protocol && (a.IP == b.IP || a.IP == AnyIP || b.IP == AnyIP)
}

// AnyIP is the address of a host port that takes the port on all addresses of the node.
const AnyIP = "0.0.0.0"
