// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// claimsGate is the gate of resource claims. Workloads that name it need the controller that makes claims out of
// templates (scheduler_perf, mustSetupCluster, starts its own under the same condition).
const claimsGate = "DynamicResourceAllocation"

// usualControllers act once for each namespace; a cluster counts as started when they have.
var usualControllers = []string{"serviceaccount-controller", "root-ca-certificate-publisher-controller"}

// claimControllers make the claims of pods, free those of pods that are gone, and delete what a pod owned. The others
// that scheduler_perf runs have nothing to do here: no namespace is deleted.
var claimControllers = []string{"resourceclaim-controller", "garbage-collector-controller"}

// volumeControllers bind volumes to the claims that the scheduler has chosen for them. Volumes that operations make
// for pods are bound already (ops).
var volumeControllers = []string{"persistentvolume-binder-controller"}

// Controllers are the controllers that run beside a workload, for every scheduler the same; none for most.
func Controllers(p *workload.Plan) []string {
	var out []string
	if p.Gates[claimsGate] {
		out = append(out, claimControllers...)
	}
	if makesStorageClass(p) {
		out = append(out, volumeControllers...)
	}
	if len(out) > 0 {
		out = append(out, usualControllers...)
	}
	return out
}

// makesStorageClass reports whether a workload has claims that wait for a scheduler.
func makesStorageClass(p *workload.Plan) bool {
	return slices.ContainsFunc(p.Ops, func(op workload.Op) bool {
		create, is := op.(*workload.CreateAny)
		return is && strings.Contains(create.Template.Text, "\nkind: StorageClass\n")
	})
}

// locked: feature gate -> the value that it has in the release that is measured, whatever is asked for.
// scheduler_perf makes its API server and scheduler emulate an older release where a workload asks for another value of
// NodeDeclaredFeatures (setupTestCase); what is measured here is one release.
var locked = map[string]bool{"NodeDeclaredFeatures": true, removed: true}

// removed is a gate that files of scheduler_perf up to 1.36 set and that 1.37 no longer has.
const removed = "SchedulerQueueingHints"

// Gates are the gates that a workload can be given, and those that it cannot.
func Gates(p *workload.Plan) (given map[string]bool, refused []string) {
	given = map[string]bool{}
	for gate, on := range p.Gates { // order: into a map, and sorted
		if value, fixed := locked[gate]; fixed && value != on {
			refused = append(refused, fmt.Sprintf("%s=%v", gate, on))
			continue
		}
		if gate != removed {
			given[gate] = on
		}
	}
	slices.Sort(refused)
	return given, refused
}

// ClusterOptions is the cluster of a workload: an API server, etcd, and what controllers it needs.
func ClusterOptions(p *workload.Plan) testcluster.Options {
	gates, _ := Gates(p)
	o := testcluster.Options{Nodes: -1, PodStages: "none", NoKubeletAdmission: true, NoHeartbeats: true, Args: ops.ClusterArgs(),
		FeatureGates: GateList(gates)}
	if len(gates) > 0 {
		o.RuntimeConfig = "api/all=true" // that of alpha resources
	}
	if controllers := Controllers(p); len(controllers) > 0 {
		o.Args = append(o.Args, "--controllers-arg=--controllers="+strings.Join(controllers, ","))
	}
	return o
}

// Quiesce ends what works in a cluster beside API server and etcd, but for the controllers if the workload needs
// some, and notes the processes that are left: what they use is not the scheduler's.
func (b *Cluster) Quiesce(controllers bool) error {
	stay := []testcluster.Role{testcluster.APIServer, testcluster.Etcd}
	if controllers {
		stay = append(stay, testcluster.Controllers)
	}
	for _, role := range []testcluster.Role{testcluster.Controllers, testcluster.Nodes} {
		if slices.Contains(stay, role) {
			continue
		}
		if err := b.Local.Kill(role); err != nil {
			return err
		}
	}
	children, err := b.Local.Status()
	if err != nil {
		return err
	}
	for _, child := range children {
		if slices.Contains(stay, child.Role) {
			b.Servers = append(b.Servers, child.PID)
		}
	}
	return nil
}
