// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// jobSet is a JobSet of one driver and two jobs of two workers: five pods, each of which fills a node.
const jobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME, namespace: default}
spec:
  failurePolicy: {maxRestarts: 3}
  replicatedJobs:
  - name: driver
    replicas: 1
    template:
      spec:
        backoffLimit: 0
        template:
          metadata:
            annotations: {pod_group: NAME, pod_group_size: "5", kumiki.dev/run-for: 1h}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: registry.example/driver:1, resources: {requests: {cpu: "6"}}}]
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata:
            annotations: {pod_group: NAME, pod_group_size: "5", kumiki.dev/run-for: 1h}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: registry.example/train:1, resources: {requests: {cpu: "6"}}}]
`

// TestJobSet: the pods of all replicated jobs are one gang, which starts whole, also after a restart, and never shares
// the capacity for one gang with another.
func TestJobSet(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c", "d")
	s.schedule(allGangs)
	s.start(JobSet)
	first, second := strings.ReplaceAll(jobSet, "NAME", "first"), strings.ReplaceAll(jobSet, "NAME", "second")

	s.apply(first)
	s.waits("default", "first-", "first", "(annotation): waits for capacity", "Needs:      5 pods",
		"5 waiting", "Insufficient cpu")
	s.addNodes("e")
	before := s.runs("default", "first-", 5)
	s.explains("default", "first", "running", "5 bound")

	s.fail("default", "first-workers-")
	s.restarted("default", "first-", 5, before)

	s.apply(second)
	s.waits("default", "second-", "second", "waits for capacity", "5 waiting")
	s.remove(first)
	s.runs("default", "second-", 5)
}

// TestJobSetSimultaneousGangs: of two gangs that are created at once, with capacity for one and most of another, one
// runs whole and the other has no node.
func TestJobSetSimultaneousGangs(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c", "d", "e", "f", "g", "h", "i")
	s.schedule(allGangs)
	s.start(JobSet)
	s.apply(strings.ReplaceAll(jobSet, "NAME", "first") + "---" + strings.ReplaceAll(jobSet, "NAME", "second"))
	s.oneOfTwo(map[string]string{"first-": "first", "second-": "second"}, 5)
}

// TestJobSetExclusivePlacement: JobSet's webhook rejects the other pods of a job until the first is scheduled, so with
// exclusive placement the gang never has all of its pods, and none starts.
func TestJobSetExclusivePlacement(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c", "d", "e")
	s.schedule(allGangs)
	s.start(JobSet)
	exclusive := "namespace: default, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: kubernetes.io/hostname}"
	s.apply(strings.NewReplacer("NAME", "first", "namespace: default", exclusive).Replace(jobSet))
	s.waits("default", "first-", "first", "waits for its pods", "3 waiting", "Missing:    2 pods")
}
