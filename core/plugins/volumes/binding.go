// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/record"
)

// VolumeBinding keeps pods on nodes that their bound volumes can reach, finds volumes for claims that wait for their
// first consumer, and has them bound or made before the pod is bound (upstream: plugins/volumebinding).
//
// It scores nodes by the storage that the pod's claims would leave free there (binding_score.go).
type VolumeBinding struct {
	timeout record.Time
	// shape is the score by utilization of the storage; empty for no score.
	shape []plugin.ShapePoint
	// migration knows the CSI form of volumes of in-tree kinds; nil when they have none.
	migration plugin.Migration
	// parsed are volume affinities that have been parsed already: parsing costs more than all else that is looked at of
	// a volume. Objects are immutable, so an entry never goes stale; it is dropped with all others when they are many.
	parsed map[*v1.NodeSelector]*volumeAffinity // required affinity of a volume -> the same, parsed
	// places are the same for where storage with capacity can be reached from.
	places  map[*metav1.LabelSelector]*nodematch.Selector // topology of storage -> the same, parsed; nil for nowhere
	catalog volumeCatalog
	// last is what was prepared last, for Reserve, which follows on the filter.
	last *volumeFilter
}

// VolumeBindingName is its name in configurations.
const VolumeBindingName = "VolumeBinding"

// VolumeBindingArgs are the arguments of VolumeBinding (upstream: VolumeBindingArgs).
type VolumeBindingArgs struct {
	// BindTimeout, in nanoseconds, is how long volumes may take to be bound or made. With 0 a pod that needs that never
	// gets there.
	BindTimeout record.Time
	// Shape is the score of a node by the utilization of its storage, in percent. If it is empty no pod is scored.
	Shape []plugin.ShapePoint
}

// DefaultVolumeBindingArgs are upstream's.
func DefaultVolumeBindingArgs() VolumeBindingArgs {
	return VolumeBindingArgs{BindTimeout: 600 * record.Second,
		Shape: []plugin.ShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}}
}

// NewVolumeBinding returns the plugin, or what is wrong with its arguments.
func NewVolumeBinding(args VolumeBindingArgs) (*VolumeBinding, error) {
	if args.BindTimeout < 0 {
		return nil, fmt.Errorf("%s: bindTimeoutSeconds: should not be a negative value", VolumeBindingName)
	}
	if len(args.Shape) != 0 {
		if err := plugin.CheckShape(args.Shape); err != nil {
			return nil, fmt.Errorf("%s: %w", VolumeBindingName, err)
		}
	}
	return newVolumeBinding(args, nil), nil
}

func newVolumeBinding(args VolumeBindingArgs, m plugin.Migration) *VolumeBinding {
	return &VolumeBinding{timeout: args.BindTimeout, shape: args.Shape, migration: m,
		parsed: map[*v1.NodeSelector]*volumeAffinity{}, places: map[*metav1.LabelSelector]*nodematch.Selector{}}
}

// WithMigration returns a plugin that asks m. What it makes of volumes counts only on nodes that have handed their kind
// over to CSI, and only for volumes that are bound: free ones are chosen by their in-tree form, as upstream does.
func (pl *VolumeBinding) WithMigration(m plugin.Migration) plugin.Plugin {
	return newVolumeBinding(VolumeBindingArgs{BindTimeout: pl.timeout, Shape: pl.shape}, m)
}

// Name is VolumeBindingName.
func (*VolumeBinding) Name() string { return VolumeBindingName }

// Reads declares claims, volumes, classes and capacities, which come and go.
func (*VolumeBinding) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsPods | plugin.ReadsObjects | plugin.ReadsWholePod
}

// PrepareFilter has nothing to say about pods without claims. It rejects pods whose claims cannot be used as they are.
func (pl *VolumeBinding) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	pl.last = nil
	if reject, any := unusableClaim(s, p); reject != "" {
		return plugin.FilterPlan{Reject: reject}
	} else if !any {
		return plugin.FilterPlan{}
	}
	claims, err := claimsOf(s, p)
	if err != nil {
		return plugin.FilterPlan{Err: err}
	}
	if claims.immediate > 0 {
		return plugin.FilterPlan{Reject: "pod has unbound immediate PersistentVolumeClaims"}
	}
	pl.last = pl.prepare(s, p, claims)
	return plugin.FilterPlan{Filter: pl.last}
}

// The verdicts. The first and the second can come together, as can the first and the third.
const (
	volumeElsewhere plugin.Code = 1 << iota // a bound volume cannot be reached from the node
	volumeNoMatch                           // no volume to bind, and none can be made
	volumeNoRoom                            // too little storage to make a volume
	volumeGone                              // a claim is bound to a volume that does not exist
)

// Reasons are in upstream's order.
func (*volumeFilter) Reasons(c plugin.Code) []string {
	var reasons []string
	for _, r := range [...]struct {
		code plugin.Code
		text string
	}{
		{volumeElsewhere, "node(s) didn't match PersistentVolume's node affinity"},
		{volumeNoMatch, "node(s) didn't find available persistent volumes to bind"},
		{volumeNoRoom, "node(s) did not have enough free storage"},
		{volumeGone, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
	} {
		if c&r.code != 0 {
			reasons = append(reasons, r.text)
		}
	}
	return reasons
}

// Advise names the claims, of which one has no volume that the node can reach.
func (*VolumeBinding) Advise(_ *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	var names []string
	for i := range p.Spec.Volumes {
		if name, _ := claimName(p, &p.Spec.Volumes[i]); hasClaim(&p.Spec.Volumes[i]) {
			names = append(names, name)
		}
	}
	r.Do = fmt.Sprintf("provide volumes that %s can reach for the pod's claims (%s)", r.Node, strings.Join(names, ", "))
}
