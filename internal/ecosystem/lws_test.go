// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// leaderWorkerSet has groups of three pods, each of which fills a node.
const leaderWorkerSet = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: NAME, namespace: default}
spec:
  replicas: REPLICAS
  startupPolicy: STARTUP
  leaderWorkerTemplate:
    size: 3
    restartPolicy: RecreateGroupOnPodRestart
    workerTemplate:
      spec:
        containers: [{name: main, image: registry.example/serve:1, resources: {requests: {cpu: "6"}}}]
`

// leaderWorkerSetOf returns a manifest.
func leaderWorkerSetOf(name, replicas, startup string) string {
	return strings.NewReplacer("NAME", name, "REPLICAS", replicas, "STARTUP", startup).Replace(leaderWorkerSet)
}

// volcanoGroup waits for the PodGroup of the pods with a prefix, whose name ends in a revision.
func (s *suite) volcanoGroup(prefix string) string {
	s.Helper()
	var name string
	version := schema.GroupVersion{Group: "scheduling.volcano.sh", Version: "v1beta1"}
	groups := s.dynamic.Resource(version.WithResource("podgroups"))
	s.eventually("PodGroup "+prefix, func(ctx context.Context) error {
		list, err := groups.Namespace("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, g := range list.Items {
			if strings.HasPrefix(g.GetName(), prefix) {
				name = g.GetName()
				return nil
			}
		}
		return fmt.Errorf("not among %d", len(list.Items))
	})
	return name
}

// TestLWS: each replica is a gang by the PodGroup of Volcano that the controller creates. A group starts whole, also
// after it was recreated, and capacity for one group is never split between two.
func TestLWS(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.apply(string(testcluster.GangDefinitions))
	s.addNodes("a", "b")
	s.schedule(allGangs)
	s.start(LeaderWorkerSet)

	s.apply(leaderWorkerSetOf("serve", "1", "LeaderCreated"))
	first := s.volcanoGroup("serve-0-")
	s.waits("default", "serve-0", first, "(volcano): waits for capacity", "Needs:      3 pods",
		"3 waiting", "Insufficient cpu")
	s.addNodes("c")
	before := s.runs("default", "serve-0", 3)

	// The controller deletes the leader, whose PodGroup, StatefulSet and workers go with it.
	if err := s.Kube.CoreV1().Pods("default").Delete(s.Context(), "serve-0-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.restarted("default", "serve-0", 3, before)

	s.apply(leaderWorkerSetOf("serve", "2", "LeaderCreated"))
	second := s.volcanoGroup("serve-1-")
	s.waits("default", "serve-1", second, "waits for capacity", "3 waiting")
	s.addNodes("d", "e", "f")
	s.runs("default", "serve-1", 3)
}

// TestLWSSimultaneousGroups: of two groups that are created at once, with capacity for one, one runs whole and the
// other has no node.
func TestLWSSimultaneousGroups(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.apply(string(testcluster.GangDefinitions))
	s.addNodes("a", "b", "c", "d", "e")
	s.schedule(allGangs)
	s.start(LeaderWorkerSet)

	s.apply(leaderWorkerSetOf("serve", "2", "LeaderCreated"))
	s.oneOfTwo(map[string]string{"serve-0": s.volcanoGroup("serve-0-"), "serve-1": s.volcanoGroup("serve-1-")}, 3)

	// With LeaderReady the controller asks for one pod, so the leader starts alone and the workers follow one by one.
	s.remove(leaderWorkerSetOf("serve", "2", "LeaderCreated"))
	s.apply(leaderWorkerSetOf("alone", "1", "LeaderReady"))
	s.runs("default", "alone-0", 3)
	s.explains("default", s.volcanoGroup("alone-0-"), "Needs:      1 pod")
}

// TestLWSWithoutPodGroups: while the cluster has no PodGroups of Volcano, the leader exists alone and waits for the
// PodGroup that it names. When their resource definition is installed, the group starts.
func TestLWSWithoutPodGroups(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c")
	s.schedule(allGangs)
	s.start(LeaderWorkerSet)

	s.apply(leaderWorkerSetOf("serve", "1", "LeaderCreated"))
	var gang string
	s.eventually("the leader", func(ctx context.Context) error {
		pod, err := s.Kube.CoreV1().Pods("default").Get(ctx, "serve-0", metav1.GetOptions{})
		if err == nil {
			gang = pod.Annotations["scheduling.k8s.io/group-name"]
		}
		return err
	})
	s.waits("default", "serve-0", gang, "waiting for pod group default/"+gang+" to appear")
	s.apply(string(testcluster.GangDefinitions))
	s.runs("default", "serve-0", 3)
	s.explains("default", gang, "(volcano): running", "3 bound")
}
