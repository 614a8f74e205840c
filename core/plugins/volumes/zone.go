// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/record"
)

// VolumeZone keeps a pod on nodes whose zone and region labels are those of its bound volumes (upstream:
// plugins/volumezone).
type VolumeZone struct{}

// VolumeZoneName is its name in configurations.
const VolumeZoneName = "VolumeZone"

// Name is VolumeZoneName.
func (VolumeZone) Name() string { return VolumeZoneName }

// Reads declares claims, volumes and their labels.
func (VolumeZone) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsObjects | plugin.ReadsWholePod
}

// zoneLabels are the labels that say where a volume or a node is, in upstream's order.
var zoneLabels = []string{v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion, v1.LabelTopologyZone,
	v1.LabelTopologyRegion}

// currentLabel is the label that has replaced a beta label; any other label itself.
func currentLabel(label string) string {
	switch label {
	case v1.LabelFailureDomainBetaZone:
		return v1.LabelTopologyZone
	case v1.LabelFailureDomainBetaRegion:
		return v1.LabelTopologyRegion
	}
	return label
}

// volumePlace is where a volume can be reached from, by one label.
type volumePlace struct {
	label  string
	values []string // sorted, each once
}

// placesOf reads the labels of a volume. One that lists several places has two underscores between them; one with an
// empty place says nothing.
func placesOf(pv *v1.PersistentVolume) []volumePlace {
	var places []volumePlace
	for _, label := range zoneLabels {
		value, ok := pv.Labels[label]
		if !ok {
			continue
		}
		set := map[string]struct{}{}
		for _, part := range strings.Split(value, "__") {
			set[strings.TrimSpace(part)] = struct{}{}
		}
		if _, broken := set[""]; !broken {
			places = append(places, volumePlace{label, slices.Sorted(maps.Keys(set))})
		}
	}
	return places
}

// PrepareFilter rejects pods with claims that cannot be followed to a volume and will not be bound by scheduling the
// pod. It has nothing to say when no volume says where it is.
func (VolumeZone) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	var f zoneFilter
	for i := range p.Spec.Volumes {
		claim := p.Spec.Volumes[i].PersistentVolumeClaim
		if claim == nil {
			continue
		}
		pv, problem := boundVolume(s, p.Namespace, claim.ClaimName)
		if problem != "" {
			return plugin.FilterPlan{Reject: problem}
		}
		if pv != nil {
			f.places = append(f.places, placesOf(pv)...)
		}
	}
	if len(f.places) == 0 {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: &f}
}

// boundVolume follows a claim to its volume. It is nil when the claim waits for the pod to be scheduled.
func boundVolume(s cluster.Snapshot, namespace, name string) (pv *v1.PersistentVolume, problem string) {
	if name == "" {
		return nil, "PersistentVolumeClaim had no name"
	}
	claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, namespace, name)
	if !ok {
		return nil, notFound("persistentvolumeclaim", name)
	}
	if claim.Spec.VolumeName != "" {
		if pv, ok = cluster.FindAPI[*v1.PersistentVolume](s, "", claim.Spec.VolumeName); !ok {
			return nil, notFound("persistentvolume", claim.Spec.VolumeName)
		}
		return pv, ""
	}
	className := classOfClaim(claim)
	if className == "" {
		return nil, "PersistentVolumeClaim had no pv name and storageClass name"
	}
	class, ok := cluster.FindAPI[*storagev1.StorageClass](s, "", className)
	switch {
	case !ok:
		return nil, notFound("storageclass.storage.k8s.io", className)
	case class.VolumeBindingMode == nil:
		return nil, fmt.Sprintf("VolumeBindingMode not set for StorageClass %q", className)
	case *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer:
		return nil, ""
	}
	return nil, "PersistentVolume had no name"
}

// zoneFilter is VolumeZone for one pod.
type zoneFilter struct {
	places []volumePlace
	words  []uint64 // word -> rows that a place leaves; kept for its memory
	part   []uint64
}

const wrongZone plugin.Code = 1

func (f *zoneFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	isPlaced := slices.ContainsFunc(zoneLabels, func(label string) bool { _, ok := v.Node.Labels[label]; return ok })
	if !isPlaced {
		return plugin.Fit // a cluster in one zone has no need of such labels
	}
	for _, place := range f.places {
		value, ok := v.Node.Labels[place.label]
		if !ok {
			value, ok = v.Node.Labels[currentLabel(place.label)]
		}
		if !ok || !slices.Contains(place.values, value) {
			return zoneCode()
		}
	}
	return plugin.Fit
}

func zoneCode() plugin.Code {
	return wrongZone | plugin.Unresolvable
}

// Column works on the sets of rows with a label: right is where the label, or where it is missing its heir, has one of
// the values.
func (f *zoneFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	if hi-lo < nodematch.LongRange {
		for n := lo; n < hi; n++ {
			if node := s.Node(n); node != nil && out[n] == plugin.Fits &&
				f.Plain(s, &cluster.NodeView{Row: n, Node: node}) != plugin.Fit {
				out[n] = tag.With(zoneCode())
			}
		}
		return
	}
	first, size := int(lo)/64, (int(hi)+63)/64-int(lo)/64
	set := nodematch.Rows{Words: nodematch.Sized(f.words, size), Rule: nodematch.Sized(f.part, size)}
	f.words, f.part = set.Words, set.Rule
	nodematch.Fill(set.Words)
	for _, place := range f.places {
		clear(set.Rule)
		if heir := currentLabel(place.label); heir != place.label {
			for _, value := range place.values {
				nodematch.Or(set.Rule, s.WithLabel(heir, value), first)
			}
			without(set.Rule, s.WithLabelKey(place.label), first)
		}
		for _, value := range place.values {
			nodematch.Or(set.Rule, s.WithLabel(place.label, value), first)
		}
		for w := range set.Words {
			set.Words[w] &= set.Rule[w]
		}
	}
	// Nodes without any of the labels are right for every volume.
	nodematch.Fill(set.Rule)
	for _, label := range zoneLabels {
		without(set.Rule, s.WithLabelKey(label), first)
	}
	for w := range set.Words {
		set.Words[w] |= set.Rule[w]
	}
	set.Reject(lo, hi, tag.With(zoneCode()), out)
}

// without takes the words of b from first on out of words.
func without(words []uint64, b cluster.Bitmap, first int) {
	for w := range words {
		if first+w < len(b) {
			words[w] &^= b[first+w]
		}
	}
}

func (*zoneFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) had no available volume zone"}
}

// Wakes on what a claim leads to, and on where nodes are.
func (VolumeZone) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.StorageClassObject, Action: plugin.Add},
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				class, ok := ch.NewObject.(*storagev1.StorageClass)
				waits := ok && class.VolumeBindingMode != nil &&
					*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
				if !ok || waits {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel}},
		{Event: plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add | plugin.Update},
			Hint: func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
				claim, ok := ch.NewObject.(*v1.PersistentVolumeClaim)
				if !ok || namesClaim(p, claim) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.VolumeObject, Action: plugin.Add | plugin.Update},
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				before, okBefore := ch.OldObject.(*v1.PersistentVolume)
				after, okAfter := ch.NewObject.(*v1.PersistentVolume)
				if okBefore && okAfter && slices.EqualFunc(placesOf(before), placesOf(after), samePlace) {
					return plugin.SkipHint
				}
				return plugin.QueueHint
			}},
	}
}

func samePlace(a, b volumePlace) bool { return a.label == b.label && slices.Equal(a.values, b.values) }

// Advise says where the pod's volumes are, if the node's labels show that it is elsewhere.
func (VolumeZone) Advise(v *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	var at []string
	for _, label := range zoneLabels {
		if value, ok := v.Node.Labels[label]; ok {
			at = append(at, label+"="+value)
		}
	}
	r.Do = fmt.Sprintf("add a node where the pod's volumes are: %s is at %s, and volumes do not move", r.Node,
		strings.Join(at, ", "))
}
