// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// trainingRuntime is a runtime with a gang, whose pods fill a node each.
const trainingRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch-gang
  labels: {trainer.kubeflow.org/framework: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 60}}
  template:
    spec:
      failurePolicy: {maxRestarts: 3}
      replicatedJobs:
      - name: node
        template:
          metadata:
            labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
          spec:
            backoffLimit: 0
            template:
              metadata:
                annotations: {kumiki.dev/run-for: 1h}
              spec:
                restartPolicy: Never
                containers: [{name: node, image: registry.example/torch:1, resources: {requests: {cpu: "6"}}}]
`

const trainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: NAME, namespace: default}
spec:
  runtimeRef: {name: torch-gang}
  trainer: {numNodes: 3}
`

// TestTrainer: the pods of a TrainJob are one gang by the PodGroup of scheduler-plugins that the controller creates.
// The gang starts whole, also after a restart by JobSet.
func TestTrainer(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.apply(string(testcluster.GangDefinitions))
	s.addNodes("a", "b")
	s.schedule(allGangs)
	s.start(JobSet, Trainer)
	first, second := strings.ReplaceAll(trainJob, "NAME", "first"), strings.ReplaceAll(trainJob, "NAME", "second")

	s.apply(trainingRuntime)
	s.apply(first)
	s.waits("default", "first-", "first", "(sigs): waits for capacity", "Needs:      3 pods",
		"3 waiting", "Insufficient cpu")
	s.addNodes("c")
	before := s.runs("default", "first-", 3)
	s.explains("default", "first", "running", "3 bound")

	s.fail("default", "first-node-")
	s.restarted("default", "first-", 3, before)

	s.apply(second)
	s.waits("default", "second-", "second", "waits for capacity", "3 waiting")
	s.remove(first)
	s.runs("default", "second-", 3)
}

// TestTrainerVolcano: with the policy for Volcano, the pods of a TrainJob are one gang by a PodGroup of Volcano. The
// gang starts whole, also after a restart by JobSet.
func TestTrainerVolcano(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.apply(string(testcluster.GangDefinitions))
	s.addNodes("a", "b")
	s.schedule(allGangs)
	s.start(JobSet, Trainer)

	s.apply(strings.Replace(trainingRuntime, "{coscheduling: {scheduleTimeoutSeconds: 60}}", "{volcano: {}}", 1))
	s.apply(strings.ReplaceAll(trainJob, "NAME", "first"))
	s.waits("default", "first-", "first", "(volcano): waits for capacity", "Needs:      3 pods",
		"3 waiting", "Insufficient cpu")
	s.addNodes("c")
	before := s.runs("default", "first-", 3)
	s.explains("default", "first", "(volcano): running", "3 bound")

	s.fail("default", "first-node-")
	s.restarted("default", "first-", 3, before)
}

// TestTrainerWithoutPodGroups: while the cluster has no PodGroups of scheduler-plugins, Trainer creates no pods. When
// their resource definition is installed, the job starts, with the controllers and kumiki as they run.
func TestTrainerWithoutPodGroups(t *testing.T) {
	s := newCluster(t, testcluster.Options{Nodes: -1, NoHeartbeats: true})
	s.addNodes("a", "b", "c")
	s.schedule(allGangs)
	trainer := s.start(JobSet, Trainer)
	s.apply(trainingRuntime)
	s.apply(strings.ReplaceAll(trainJob, "NAME", "first"))
	s.eventually("Trainer's error", func(context.Context) error {
		if !strings.Contains(trainer.Output(), `no matches for kind \"PodGroup\"`) {
			return errors.New("not in its output")
		}
		return nil
	})
	if pods, err := s.pods(t.Context(), "default", "first-"); err != nil || len(pods) > 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	s.apply(string(testcluster.GangDefinitions))
	s.runs("default", "first-", 3)
	s.explains("default", "first", "(sigs): running", "3 bound")
}
