// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

const disk = "disk.csi.example.com"

// Short forms of the objects of volume scenarios. Sizes are in Gi.
func storageClass(provisioner, mode, more string) string {
	return `- {kind: StorageClass, name: SCENARIO, provisioner: ` + provisioner + `, volumeBindingMode: ` + mode + more + "}\n"
}

func wantsVolume(name, class string, size int, more string) string {
	return fmt.Sprintf("- {kind: PersistentVolumeClaim, name: %s, spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: %dGi}}%s}}\n",
		name, class, size, more)
}

// localVolume is a volume of the class SCENARIO that only one node reaches.
func localVolume(name, node string, size int) string {
	return fmt.Sprintf("- {kind: PersistentVolume, name: SCENARIO-%s, spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], capacity: {storage: %dGi}, "+
		"local: {path: /x}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [SCENARIO-%s]}]}]}}}}\n", name, size, node)
}

func mounts(pod, claim, more string) string {
	return fmt.Sprintf("- {kind: Pod, name: %s, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]%s}}\n", pod, claim, more)
}

func onHost(node string) string {
	return ", nodeSelector: {kubernetes.io/hostname: SCENARIO-" + node + "}"
}

const (
	noProvisioner = "kubernetes.io/no-provisioner"
	late          = "WaitForFirstConsumer"
)

func isBound(claim string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		_, err := s.phase(ctx, claim, v1.ClaimBound)
		return err
	}
}

// areAvailable waits until every scheduler knows the volumes as available. Without it, a pod can be decided between the
// updates of two volumes, whose phase a controller sets one after the other.
func areAvailable(volumes ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		return until(ctx, func() string {
			for _, scheduler := range s.schedulers {
				missing := ""
				if err := scheduler.Ask(ctx, func(e *engine.Engine) {
					for _, name := range volumes {
						pv, known := cluster.Find[*v1.PersistentVolume](e.View().Snapshot(), "", s.scenario+"-"+name)
						if !known || pv.Status.Phase != v1.VolumeAvailable {
							missing = name
						}
					}
				}); err != nil {
					return err.Error()
				}
				if missing != "" {
					return "a scheduler does not know volume " + missing + " as available"
				}
			}
			return ""
		})
	}
}

func volumeScenarios() []scenario {
	two := [][2]string{{"a", "{count: 2}"}}
	zonedDisks := [][2]string{{"a", "{count: 2, zones: [z0, z1], csi: {" + disk + ": 0}}"}}
	return []scenario{
		{"volume-static", two, []step{
			{apply: storageClass(noProvisioner, late, "") + localVolume("v1", "a-0001", 5) + localVolume("v2", "a-0001", 2), do: areAvailable("v1", "v2")},
			{apply: wantsVolume("c", "SCENARIO", 2, "") + mounts("p", "c", ""), want: map[string]string{"p": "a-1"}, do: isBound("c")},
			// The smaller of two that fit was taken.
			{do: func(ctx context.Context, s *stage) error {
				volume, err := s.phase(ctx, "c", v1.ClaimBound)
				if err == nil && volume != s.scenario+"-v2" {
					return fmt.Errorf("claim c has volume %s", volume)
				}
				return err
			}},
			{apply: wantsVolume("big", "SCENARIO", 9, "") + mounts("waits", "big", ""), want: map[string]string{"waits": "!didn't find available persistent volumes to bind"}},
			{apply: localVolume("v3", "a-0000", 9), want: map[string]string{"waits": "a-0"}},
		}},
		{"volume-made", zonedDisks, []step{
			{apply: storageClass(disk, late, "") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", onHost("a-0001")), want: map[string]string{"p": "a-1"}},
			{apply: mounts("follows", "c", ""), want: map[string]string{"follows": "a-1"}},
			{apply: mounts("cannot", "c", onHost("a-0000")), want: map[string]string{"cannot": "!didn't match PersistentVolume's node affinity"}},
		}},
		{"volume-topologies", zonedDisks, []step{
			{apply: storageClass(disk, late, ", allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z1]}]}]") +
				wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ""), want: map[string]string{"p": "a-1"}},
		}},
		{"volume-immediate", zonedDisks, []step{
			{apply: storageClass("nobody.example.com", "Immediate", "") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ""),
				want: map[string]string{"p": "!pod has unbound immediate PersistentVolumeClaims"}},
			{apply: localVolume("v", "a-0001", 1), want: map[string]string{"p": "a-1"}},
		}},
		{"volume-missing", two, []step{
			{apply: storageClass(noProvisioner, late, "") + localVolume("v", "a-0000", 1) + mounts("p", "later", ""),
				want: map[string]string{"p": `!persistentvolumeclaim "later" not found`}},
			{apply: wantsVolume("later", "SCENARIO", 1, ""), want: map[string]string{"p": "a-0"}},
		}},
		{"volume-capacity", [][2]string{{"a", "{count: 2, csi: {room.csi.example.com: 0}}"}}, []step{
			{apply: `[{kind: CSIDriver, name: room.csi.example.com, spec: {storageCapacity: true}}]`},
			{apply: storageClass("room.csi.example.com", late, "") +
				"- {kind: CSIStorageCapacity, name: c1, storageClassName: SCENARIO, capacity: 10Gi, nodeTopology: {matchLabels: {kubernetes.io/hostname: SCENARIO-a-0001}}}\n" +
				wantsVolume("small", "SCENARIO", 5, "") + wantsVolume("big", "SCENARIO", 50, "") + mounts("p", "small", "") + mounts("waits", "big", ""),
				want: map[string]string{"p": "a-1", "waits": "!did not have enough free storage"}},
			{apply: "- {kind: CSIStorageCapacity, name: c0, storageClassName: SCENARIO, capacity: 100Gi, nodeTopology: {matchLabels: {kubernetes.io/hostname: SCENARIO-a-0000}}}\n",
				want: map[string]string{"waits": "a-0"}},
		}},
		{"volume-limits", [][2]string{{"a", "{csi: {few.csi.example.com: 1}}"}}, []step{
			{apply: storageClass("few.csi.example.com", late, "") + wantsVolume("c1", "SCENARIO", 1, "") + wantsVolume("c2", "SCENARIO", 1, "") + mounts("p1", "c1", ""),
				want: map[string]string{"p1": "a-0"}},
			{apply: mounts("same-claim", "c1", "") + mounts("p2", "c2", ""),
				want: map[string]string{"same-claim": "a-0", "p2": "!exceed max volume count"}},
			{remove: []string{"Pod/p1", "Pod/same-claim"}, want: map[string]string{"p2": "a-0"}},
		}},
		{"volume-once-per-pod", [][2]string{{"a", "{count: 2, csi: {" + disk + ": 0}}"}}, []step{
			{apply: storageClass(disk, late, "") + strings.ReplaceAll(wantsVolume("c", "SCENARIO", 1, ""), "ReadWriteOnce", "ReadWriteOncePod") + mounts("p1", "c", ""),
				want: map[string]string{"p1": "*"}},
			{apply: mounts("p2", "c", ""), want: map[string]string{"p2": "!ReadWriteOncePod access mode already in-use by another pod"}},
			{remove: []string{"Pod/p1"}, want: map[string]string{"p2": "*"}},
		}},
		{"volume-disk-in-use", [][2]string{{"a", "{}"}}, []step{
			{apply: repeated(1, "{kind: Pod, name: p%d, spec: {volumes: [{name: v, iscsi: {targetPortal: '10.0.0.1', iqn: 'iqn.2001-04.com.example:x', lun: 0}}]}}"),
				want: map[string]string{"p0": "a-0"}},
			{apply: "- {kind: Pod, name: second, spec: {volumes: [{name: v, iscsi: {targetPortal: '10.0.0.1', iqn: 'iqn.2001-04.com.example:x', lun: 0}}]}}",
				want: map[string]string{"second": "!had no available disk"}},
			{remove: []string{"Pod/p0"}, want: map[string]string{"second": "a-0"}},
		}},
		{"volume-zone", [][2]string{{"a", "{count: 2, zones: [z0, z1]}"}}, []step{
			{apply: storageClass(noProvisioner, "Immediate", "") +
				"- {kind: PersistentVolume, name: SCENARIO-v, labels: {topology.kubernetes.io/zone: z1}, spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: x.example.com, volumeHandle: h}}}\n" +
				wantsVolume("c", "SCENARIO", 1, ""), do: isBound("c")},
			{apply: mounts("p", "c", "") + mounts("cannot", "c", onHost("a-0000")), want: map[string]string{"p": "a-1", "cannot": "!had no available volume zone"}},
		}},
		{"volume-ephemeral", [][2]string{{"a", "{csi: {" + disk + ": 0}}"}}, []step{
			{apply: storageClass(disk, late, "") + "- {kind: Pod, name: p, spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}\n",
				want: map[string]string{"p": "a-0"}},
		}},
		// No provisioner makes the volume: the timeout of the profile ends the wait, and the pod's condition states
		// it.
		{"volume-never-made", [][2]string{{"a", "{count: 2, csi: {" + disk + ": 0}}"}}, []step{
			{apply: storageClass("silent.example.com", late, "") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ", schedulerName: hurried"),
				want: map[string]string{"p": "!SchedulerError&binding volumes: context deadline exceeded"}},
			{apply: `[{kind: Pod, name: others}]`, want: map[string]string{"others": "*"}},
		}},
		{"volume-bad-claims", two, []step{
			{apply: storageClass(noProvisioner, late, "") + wantsVolume("never", "SCENARIO", 1, "") + wantsVolume("no-class", "nobody-SCENARIO", 1, "") +
				mounts("p", "never", "") + mounts("q", "no-class", "") + mounts("gone", "nobody", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "!didn't find available persistent volumes to bind", "q": "!pod has unbound immediate PersistentVolumeClaims",
					"gone": `!persistentvolumeclaim "nobody" not found`, "others": "*"}},
		}},
		// The volume can be reached from no node: its affinity contradicts itself.
		{"volume-bad-affinity", two, []step{
			{apply: storageClass(noProvisioner, "Immediate", "") +
				"- {kind: PersistentVolume, name: SCENARIO-v, spec: {storageClassName: SCENARIO, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, local: {path: /x}, " +
				"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Gt, values: ['7']}, {key: nobody, operator: Exists}]}]}}}}\n" +
				wantsVolume("c", "SCENARIO", 1, ""), do: isBound("c")},
			{apply: mounts("p", "c", "") + "- {kind: Pod, name: others}",
				want: map[string]string{"p": "!didn't match PersistentVolume's node affinity", "others": "*"}},
		}},
		{"volume-refused", [][2]string{{"a", "{count: 2, csi: {" + disk + ": 0}}"}}, []step{
			{apply: storageClass(disk, late, ", parameters: {fail: 'yes'}") + wantsVolume("c", "SCENARIO", 1, "") + mounts("p", "c", ""),
				want: map[string]string{"p": "!SchedulerError&provisioning failed for PVC"}},
			{apply: `[{kind: Pod, name: others}]`, want: map[string]string{"others": "*"}},
		}},
	}
}
