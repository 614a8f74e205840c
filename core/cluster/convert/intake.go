// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"weak"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	res "github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Intake converts API objects to compact records. Only one goroutine may use it. It keeps each PodSpec while some pod
// uses it, so that pods of one template share one.
type Intake struct {
	specs map[string]weak.Pointer[cluster.PodSpec] // canonical form -> the spec in use, or a dead pointer until swept
	sweep int                                      // sweep dead pointers when specs grows past this
	form  form                                     // of the last lookup; kept for its memory
	draft cluster.PodSpec                          // the spec that is being read
	full  bool                                     // records keep the objects that they are made of

	gangs  GangRules
	marks  sharing[cluster.GangMark]
	bounds sharing[cluster.BoundMark]
}

// NewIntake returns an empty Intake.
func NewIntake() *Intake {
	return &Intake{specs: map[string]weak.Pointer[cluster.PodSpec]{}, sweep: 1024,
		marks: newSharing[cluster.GangMark](), bounds: newSharing[cluster.BoundMark]()}
}

// KeepFull makes records keep the objects that they are made of, for code that is not native and reads any field. The
// objects must not be changed afterwards.
func (in *Intake) KeepFull() { in.full = true }

// Pod records one version of a pod. It accepts any object that the API can hold, with nil fields too.
func (in *Intake) Pod(p *v1.Pod) *cluster.Pod {
	rec := &cluster.Pod{
		UID:               cluster.UID(p.UID),
		Namespace:         p.Namespace,
		Name:              p.Name,
		ResourceVersion:   p.ResourceVersion,
		Generation:        p.Generation,
		NodeName:          p.Spec.NodeName,
		Nominated:         p.Status.NominatedNodeName,
		Terminating:       p.DeletionTimestamp != nil,
		GoneBy:            timeOf(p.DeletionTimestamp),
		DeletedAt:         deletedAt(p),
		Created:           timeOf(&p.CreationTimestamp),
		Start:             timeOf(p.Status.StartTime),
		RunsAtMost:        runsAtMost(p),
		Expected:          expectedDuration(p),
		EvictableForGangs: in.gangs.evictable(p),
		Owned:             metav1.GetControllerOfNoCopy(p) != nil,
		OfNode:            ofNode(p),
		Owner:             ownerOf(p),
		ClaimsHash:        claimsHash(p),
		Gang:              in.gangMark(p),
		Spec:              in.specFor(p),
	}
	rec.Bound = in.boundMark(p, rec.Gang)
	if in.full {
		rec.Full = p
	}
	if rec.ClaimsHash != 0 {
		rec.Claims = &cluster.PodClaims{Statuses: p.Status.ResourceClaimStatuses,
			Extended: p.Status.ExtendedResourceClaimStatus}
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			rec.Condition = cluster.Condition{Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration}
			if c.Reason == v1.PodReasonUnschedulable {
				rec.UnschedulableSince = timeOf(&c.LastTransitionTime)
			}
		}
	}
	if preempted(p) {
		rec.Preempted, rec.EvictionPending = rec.Terminating, !rec.Terminating
	}
	return rec
}

// deletedAt returns when the deletion of a pod was requested, 0 if that is unknown.
func deletedAt(p *v1.Pod) record.Time {
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return timeOf(p.DeletionTimestamp) - record.Time(*p.DeletionGracePeriodSeconds)*record.Second
}

// PendingPod records a pod that is not bound, whatever its spec.nodeName: that is the node that it requires. The API
// has no such pod, because a pod with spec.nodeName is bound; generated clusters have them, as upstream's NodeName
// plugin supports them.
func (in *Intake) PendingPod(p *v1.Pod) *cluster.Pod {
	rec := in.Pod(p)
	if rec.NodeName != "" {
		spec := *rec.Spec
		spec.NodeName, rec.NodeName = rec.NodeName, ""
		rec.Spec = in.Share(&spec)
	}
	return rec
}

// ownerOf returns the hash of the UID of a pod's controller.
func ownerOf(p *v1.Pod) uint64 {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(owner.UID))
	return h.Sum64()
}

// ofNode reports whether a pod belongs to its node: a DaemonSet's pod or the mirror of a static pod.
func ofNode(p *v1.Pod) bool {
	if _, mirror := p.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// preempted reports whether a pod's status says that a scheduler evicted it (upstream: plugins/defaultpreemption,
// podTerminatingByPreemption).
func preempted(p *v1.Pod) bool {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.DisruptionTarget {
			return c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

func timeOf(t *metav1.Time) record.Time {
	if t.IsZero() {
		return 0
	}
	return record.Time(t.UnixNano())
}

func claimsHash(p *v1.Pod) uint64 {
	if len(p.Status.ResourceClaimStatuses) == 0 && p.Status.ExtendedResourceClaimStatus == nil {
		return 0
	}
	return hashOf(p.Status.ResourceClaimStatuses, p.Status.ExtendedResourceClaimStatus)
}

// hashOf hashes the JSON form of values, in which map keys are sorted.
func hashOf(values ...any) uint64 {
	h := fnv.New64a()
	enc := json.NewEncoder(h)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			panic(fmt.Sprintf("hashing %T: %v", v, err)) // API types always marshal
		}
	}
	return h.Sum64()
}

// Share returns the PodSpec in use that equals s, or s itself if there was none.
func (in *Intake) Share(s *cluster.PodSpec) *cluster.PodSpec {
	if known := in.known(s); known != nil {
		return known
	}
	in.keep(s)
	return s
}

// known returns the spec in use that equals s, nil if there is none. It leaves the form of s in in.form.
func (in *Intake) known(s *cluster.PodSpec) *cluster.PodSpec {
	in.form = in.form[:0].spec(s)
	return in.specs[string(in.form)].Value() // no copy of the key: most specs are known
}

// keep registers a spec that known did not find.
func (in *Intake) keep(s *cluster.PodSpec) {
	if len(in.specs) >= in.sweep {
		for k, p := range in.specs { // order: each entry is handled on its own
			if p.Value() == nil {
				delete(in.specs, k)
			}
		}
		in.sweep = max(1024, 2*len(in.specs))
	}
	in.specs[string(in.form)] = weak.Make(s)
	if s.Alike != s { // also when s is a changed copy of a shared spec
		s.Alike = in.alike(s)
	}
}

// specFor returns the spec in use for a pod.
func (in *Intake) specFor(p *v1.Pod) *cluster.PodSpec {
	read(&in.draft, p)
	if known := in.known(&in.draft); known != nil {
		return known
	}
	s := in.draft
	in.keep(&s)
	return &s
}

// alike returns s without the fields that only cross-node filters and scorers, gates and the queue read.
func (in *Intake) alike(s *cluster.PodSpec) *cluster.PodSpec {
	r := *s
	r.SchedulerName, r.Priority, r.NeverPreempts = "", 0, false
	r.Labels, r.Gates, r.Controller, r.Spread = nil, nil, cluster.Controller{}, nil
	r.PodAffinity, r.PodAntiAffinity, r.Volumes, r.Devices = nil, nil, nil, nil
	r.Alike = &r // already reduced
	shared := in.Share(&r)
	if shared.WithoutRequests == nil {
		shared.WithoutRequests = in.withoutRequests(shared)
	}
	return shared
}

// withoutRequests returns a spec that is its own Alike, without its requests.
func (in *Intake) withoutRequests(s *cluster.PodSpec) *cluster.PodSpec {
	r := *s
	r.Request, r.Held, r.Scored = res.Amounts{}, res.Amounts{}, res.Amounts{}
	r.HeldNonZero, r.ScoreNonZero = [2]int64{}, [2]int64{}
	r.Alike = &r
	shared := in.Share(&r) // s itself if it requests nothing
	shared.WithoutRequests = shared
	return shared
}

// read fills s from a pod.
func read(s *cluster.PodSpec, p *v1.Pod) {
	*s = cluster.PodSpec{
		SchedulerName: p.Spec.SchedulerName,
		NeverPreempts: p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == v1.PreemptNever,
		Labels:        p.Labels,
		NodeSelector:  p.Spec.NodeSelector,
		Tolerations:   p.Spec.Tolerations,
		Ports:         hostPorts(p),
		Images:        images(p),
	}
	s.Priority = priorityOf(p)
	for _, g := range p.Spec.SchedulingGates {
		s.Gates = append(s.Gates, g.Name)
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		s.Required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		s.Preferred = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a := p.Spec.Affinity; a != nil {
		s.PodAffinity, s.PodAntiAffinity = a.PodAffinity, a.PodAntiAffinity
	}
	s.Spread = p.Spec.TopologySpreadConstraints
	s.Controller = controllerOf(p)
	s.Volumes = volumes(p)
	s.Devices = devices(p)
	s.Features, s.FeaturesErr = neededFeatures(p)
	requests(p, s)
}

// priorityOf returns the priority that the API server resolved from the priority class, 0 if it has not; no other
// field of a pod counts (answer A18 of the gang rules).
func priorityOf(p *v1.Pod) int32 {
	if p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

var defaults = v1.ResourceList{
	v1.ResourceCPU:    *apiresource.NewMilliQuantity(cluster.DefaultMilliCPU, apiresource.DecimalSI),
	v1.ResourceMemory: *apiresource.NewQuantity(cluster.DefaultMemory, apiresource.DecimalSI),
}

// requests fills the views of a pod's requests. Which options each view takes follows upstream: noderesources/fit.go
// (Request, Scored, ScoreNonZero), framework/types.go CalculateResource (Held, HeldNonZero).
func requests(p *v1.Pod, s *cluster.PodSpec) {
	asked := askedBy(p)
	s.Request = res.FromList(asked)
	// A pod requests no pods; the column of pods counts one for each.
	s.Request.Pods = 0
	if !resource.IsPodLevelRequestsSet(p) && settled(p) {
		// Most pods have nothing in which the views below differ.
		s.Held, s.Scored = s.Request, s.Request
		if !statesCPUAndMemory(p) {
			asked = resource.PodRequests(p, resource.PodResourcesOptions{NonMissingContainerRequests: defaults})
		}
		s.ScoreNonZero = cpuAndMemory(asked)
		s.HeldNonZero = s.ScoreNonZero
		return
	}
	scored := resource.PodResourcesOptions{SkipPodLevelResources: true}
	s.Scored = res.FromList(resource.PodRequests(p, scored))
	s.Scored.Pods = 0
	scored.NonMissingContainerRequests = defaults
	s.ScoreNonZero = cpuAndMemory(resource.PodRequests(p, scored))

	resized := resource.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	held := resource.PodRequests(p, resized)
	s.Held = res.FromList(held)
	s.Held.Pods = 0
	resized.NonMissingContainerRequests = defaults
	if resource.IsPodLevelRequestsSet(p) {
		missing := v1.ResourceList{}
		for name, q := range defaults { // order: fills another map, key by key
			if _, stated := held[name]; !stated {
				missing[name] = q
			}
		}
		resized.NonMissingContainerRequests = missing
	}
	s.HeldNonZero = cpuAndMemory(resource.PodRequests(p, resized))
}

// askedBy returns a pod's requests: most pods have one container, and request what it requests.
func askedBy(p *v1.Pod) v1.ResourceList {
	if len(p.Spec.Containers) == 1 && len(p.Spec.InitContainers) == 0 && p.Spec.Overhead == nil &&
		!resource.IsPodLevelRequestsSet(p) {
		return p.Spec.Containers[0].Resources.Requests
	}
	return resource.PodRequests(p, resource.PodResourcesOptions{})
}

// settled reports whether no status differs in amounts from the spec: no resize is in progress, and none was refused.
func settled(p *v1.Pod) bool {
	return p.Status.Resources == nil && p.Status.AllocatedResources == nil && !resource.IsPodResizeInfeasible(p) &&
		sameAmounts(p.Spec.Containers, p.Status.ContainerStatuses) &&
		sameAmounts(p.Spec.InitContainers, p.Status.InitContainerStatuses)
}

func sameAmounts(containers []v1.Container, statuses []v1.ContainerStatus) bool {
	for i := range statuses {
		status := &statuses[i]
		var actuated v1.ResourceList
		if status.Resources != nil {
			actuated = status.Resources.Requests
		}
		if actuated == nil && status.AllocatedResources == nil {
			continue
		}
		at := slices.IndexFunc(containers, func(c v1.Container) bool { return c.Name == status.Name })
		if at < 0 {
			return false
		}
		asked := containers[at].Resources.Requests
		if actuated != nil && !sameList(asked, actuated) || status.AllocatedResources != nil &&
			!sameList(asked, status.AllocatedResources) {
			return false
		}
	}
	return true
}

func sameList(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y apiresource.Quantity) bool { return x.Cmp(y) == 0 })
}

// statesCPUAndMemory reports whether every container requests both, so that no default applies.
func statesCPUAndMemory(p *v1.Pod) bool {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			_, cpu := list[i].Resources.Requests[v1.ResourceCPU]
			_, memory := list[i].Resources.Requests[v1.ResourceMemory]
			if !cpu || !memory {
				return false
			}
		}
	}
	return true
}

func cpuAndMemory(list v1.ResourceList) [2]int64 {
	return [2]int64{res.Milli(list[v1.ResourceCPU]), res.Whole(list[v1.ResourceMemory])}
}

// hostPorts returns the node ports of containers and sidecars (upstream: pkg/scheduler/util, GetHostPorts).
func hostPorts(p *v1.Pod) []cluster.HostPort {
	var ports []cluster.HostPort
	add := func(c *v1.Container) {
		for _, port := range c.Ports {
			if port.HostPort <= 0 {
				continue
			}
			hp := cluster.HostPort{IP: port.HostIP, Protocol: port.Protocol, Port: port.HostPort}
			if hp.IP == "" {
				hp.IP = cluster.AnyIP
			}
			if hp.Protocol == "" {
				hp.Protocol = v1.ProtocolTCP
			}
			ports = append(ports, hp)
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	return ports
}

func images(p *v1.Pod) []string {
	var names []string
	for i := range p.Spec.InitContainers {
		names = append(names, NormalImage(p.Spec.InitContainers[i].Image))
	}
	for i := range p.Spec.Containers {
		names = append(names, NormalImage(p.Spec.Containers[i].Image))
	}
	for i := range p.Spec.Volumes {
		if img := p.Spec.Volumes[i].Image; img != nil {
			names = append(names, NormalImage(img.Reference))
		}
	}
	return names
}

// NormalImage adds the tag that a container runtime assumes if an image has none.
func NormalImage(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

// Node records one version of a node.
func (in *Intake) Node(n *v1.Node) *cluster.Node {
	rec := &cluster.Node{
		Name:            n.Name,
		UID:             string(n.UID),
		Labels:          n.Labels,
		Taints:          n.Spec.Taints,
		Unschedulable:   n.Spec.Unschedulable,
		Allocatable:     notNegative(res.FromList(n.Status.Allocatable)),
		Features:        slices.Sorted(slices.Values(n.Status.DeclaredFeatures)),
		ConditionsHash:  conditionsHash(n),
		AnnotationsHash: mapHash(n.Annotations),
	}
	if in.full {
		rec.Full = n
	}
	if len(n.Status.Images) > 0 {
		rec.Images = make([]cluster.Image, 0, len(n.Status.Images))
	}
	for _, img := range n.Status.Images {
		rec.Images = append(rec.Images, cluster.Image{Names: img.Names, Size: img.SizeBytes})
	}
	return rec
}

// notNegative replaces amounts below 0, which the API server rejects, by 0, so that computing the free capacity
// cannot overflow.
func notNegative(a res.Amounts) res.Amounts {
	for _, v := range []*int64{&a.MilliCPU, &a.Memory, &a.Ephemeral, &a.Pods} {
		*v = max(*v, 0)
	}
	for i := range a.Scalars {
		a.Scalars[i].Value = max(a.Scalars[i].Value, 0)
	}
	return a
}

// conditionsHash covers types and status of conditions. If a type occurs twice the last one counts, as in the map
// that upstream compares.
func conditionsHash(n *v1.Node) uint64 {
	var sum uint64
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		again := slices.ContainsFunc(n.Status.Conditions[i+1:], func(later v1.NodeCondition) bool {
			return later.Type == c.Type
		})
		if !again {
			sum += pairHash(string(c.Type), string(c.Status))
		}
	}
	return sum
}

// mapHash sums the hashes of the pairs, so it does not depend on the order of iteration.
func mapHash(m map[string]string) uint64 {
	var sum uint64
	for k, v := range m { // order: addition commutes
		sum += pairHash(k, v)
	}
	return sum
}

// pairHash returns FNV-1a of the length of the key, in eight bytes, the key and the value.
func pairHash(k, v string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h, size := uint64(offset), uint64(len(k))
	for range 8 {
		h = (h ^ size&0xff) * prime
		size >>= 8
	}
	for i := range len(k) {
		h = (h ^ uint64(k[i])) * prime
	}
	for i := range len(v) {
		h = (h ^ uint64(v[i])) * prime
	}
	return h
}
