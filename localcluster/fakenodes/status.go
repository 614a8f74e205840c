// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

// Annotations of a pod that say how long its containers run and how they end.
// Without them pods of a Job end with code 0, after Stages.JobRun, and others
// run until they are deleted.
const (
	RunForAnnotation   = "kumiki.dev/run-for"
	ExitCodeAnnotation = "kumiki.dev/exit-code"
)

// Stages are the durations of a pod's life.
type Stages struct {
	// Start is the time between admission and Running.
	Start time.Duration
	// JobRun is how long a Job's pod runs when it does not say.
	JobRun time.Duration
	// Grace makes a deleted pod stay for its grace period.
	Grace bool
	// None leaves admitted pods as the scheduler left them, so that a benchmark
	// of scheduling pays for no status. Refused pods still fail.
	None bool
}

// StagesByName gives the stages of --pod-stages.
func StagesByName(name string) (Stages, error) {
	switch name {
	case "fast":
		return Stages{}, nil
	case "realistic":
		return Stages{Start: time.Second, JobRun: 5 * time.Second, Grace: true}, nil
	case "none":
		return Stages{None: true}, nil
	}
	return Stages{}, fmt.Errorf("pod stages %q: unknown; known are fast, realistic and none", name)
}

// step is the next thing to do for a pod: one of write, remove, wait, or
// nothing.
type step struct {
	// status to write, if not nil.
	status *v1.PodStatus
	// remove the object: its containers are gone.
	remove bool
	// wait and look again.
	wait time.Duration
}

// next is a pure function of what is known about the pod and the time.
func (s Stages) next(v view, now time.Time) step {
	pod := v.pod
	switch {
	case pod.DeletionTimestamp != nil:
		return s.nextOfDeleted(v, now)
	case v.state == refused && pod.Status.Phase == v1.PodPending:
		return step{status: rejectedStatus(pod, v.verdict, now)}
	case v.state == evicted && !terminal(pod):
		return step{status: evictedStatus(pod, v.verdict, now)}
	case s.None:
		return step{}
	case v.state == admitted && pod.Status.Phase == v1.PodPending:
		return s.nextOfPending(v, now)
	case pod.Status.Phase == v1.PodRunning:
		if status := nextOfResize(pod, v.resize, now); status != nil {
			return step{status: status}
		}
		return s.nextOfRunning(pod, now)
	}
	return step{}
}

// released reports whether the kubelet has let go of a deleted pod already:
// only finalizers hold it.
func released(pod *v1.Pod) bool {
	return pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) > 0
}

func (s Stages) nextOfDeleted(v view, now time.Time) step {
	pod := v.pod
	if s.Grace && v.state == admitted {
		// The API server sets the timestamp to the end of the grace period.
		if left := pod.DeletionTimestamp.Sub(now); left > 0 {
			return step{wait: left}
		}
	}
	// Controllers that hold a finalizer (Job) wait for the terminal phase.
	if !terminal(pod) && (s.Grace || len(pod.Finalizers) > 0) {
		return step{status: endedStatus(pod, 0, "", now, v1.PodFailed)}
	}
	if released(pod) {
		return step{}
	}
	return step{remove: true}
}

func (s Stages) nextOfPending(v view, now time.Time) step {
	if s.Start == 0 {
		return step{status: runningStatus(v.pod, v.node, now)}
	}
	started := v.pod.Status.StartTime
	if started == nil {
		return step{status: creatingStatus(v.pod, v.node, now)}
	}
	if left := started.Add(s.Start).Sub(now); left > 0 {
		return step{wait: left}
	}
	return step{status: runningStatus(v.pod, v.node, now)}
}

func (s Stages) nextOfRunning(pod *v1.Pod, now time.Time) step {
	runs, ends := s.runs(pod)
	if !ends {
		return step{}
	}
	since := now
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			since = c.State.Running.StartedAt.Time
		}
	}
	if left := since.Add(runs).Sub(now); left > 0 {
		return step{wait: left}
	}
	code, _ := strconv.Atoi(pod.Annotations[ExitCodeAnnotation])
	if code != 0 {
		return step{status: endedStatus(pod, int32(code), "Error", now, v1.PodFailed)}
	}
	return step{status: endedStatus(pod, 0, "Completed", now, v1.PodSucceeded)}
}

// runs tells how long a pod runs, and whether it ends at all.
func (s Stages) runs(pod *v1.Pod) (time.Duration, bool) {
	if pod.Spec.RestartPolicy == v1.RestartPolicyAlways {
		return 0, false
	}
	if d, err := time.ParseDuration(pod.Annotations[RunForAnnotation]); err == nil {
		return d, true
	}
	for _, o := range pod.OwnerReferences {
		if o.Kind == "Job" {
			return s.JobRun, true
		}
	}
	return 0, false
}

// rejectedStatus is what a kubelet leaves of the status when it refuses.
func rejectedStatus(pod *v1.Pod, verdict admission.Verdict, now time.Time) *v1.PodStatus {
	status := pod.Status.DeepCopy()
	status.Phase = v1.PodFailed
	status.Reason = verdict.Reason
	status.Message = admission.MessagePrefix + verdict.Message
	status.StartTime = stamp(now)
	return status
}

// evictedStatus returns the status of a pod that was evicted for a critical one.
func evictedStatus(pod *v1.Pod, verdict admission.Verdict, now time.Time) *v1.PodStatus {
	status := endedStatus(pod, 137, "Error", now, v1.PodFailed)
	status.Reason, status.Message = verdict.Reason, verdict.Message
	setCondition(status, pod, v1.DisruptionTarget, v1.ConditionTrue, v1.PodReasonTerminationByKubelet, now)
	return status
}

func creatingStatus(pod *v1.Pod, node *v1.Node, now time.Time) *v1.PodStatus {
	status := placedStatus(pod, node, now)
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		setCondition(status, pod, t, v1.ConditionFalse, "ContainersNotReady", now)
	}
	return status
}

func runningStatus(pod *v1.Pod, node *v1.Node, now time.Time) *v1.PodStatus {
	status := placedStatus(pod, node, now)
	status.Phase = v1.PodRunning
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *stamp(now)}}
	started := true
	for _, c := range pod.Spec.InitContainers {
		state := v1.ContainerState{Terminated: terminated(0, "Completed", now)}
		keeps := c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		if keeps {
			state = running
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &keeps, State: state,
		})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started, State: running,
		})
		give(&status.ContainerStatuses[len(status.ContainerStatuses)-1], pod.Spec.Containers)
	}
	status.PodIP = podIP(pod, node)
	status.PodIPs = []v1.PodIP{{IP: status.PodIP}}
	for _, g := range pod.Spec.ReadinessGates {
		setCondition(status, pod, g.ConditionType, v1.ConditionTrue, "", now)
	}
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		setCondition(status, pod, t, v1.ConditionTrue, "", now)
	}
	return status
}

// endedStatus is the status of a pod whose containers have ended.
func endedStatus(pod *v1.Pod, code int32, reason string, now time.Time, phase v1.PodPhase) *v1.PodStatus {
	status := pod.Status.DeepCopy()
	status.Phase = phase
	for _, list := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			c.Ready = false
			if c.State.Terminated == nil {
				c.State = v1.ContainerState{Terminated: terminated(code, reason, now)}
			}
		}
	}
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		setCondition(status, pod, t, v1.ConditionFalse, "PodCompleted", now)
	}
	return status
}

func terminated(code int32, reason string, now time.Time) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: *stamp(now), FinishedAt: *stamp(now)}
}

// placedStatus begins the status of an admitted pod: addresses, start time and
// the conditions before its containers run.
func placedStatus(pod *v1.Pod, node *v1.Node, now time.Time) *v1.PodStatus {
	status := pod.Status.DeepCopy()
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	if status.StartTime == nil {
		status.StartTime = stamp(now)
	}
	status.HostIP = hostIP(node)
	status.HostIPs = []v1.HostIP{{IP: status.HostIP}}
	setCondition(status, pod, v1.PodReadyToStartContainers, v1.ConditionTrue, "", now)
	setCondition(status, pod, v1.PodInitialized, v1.ConditionTrue, "", now)
	return status
}

func setCondition(status *v1.PodStatus, pod *v1.Pod, t v1.PodConditionType, value v1.ConditionStatus, reason string, now time.Time) {
	c := v1.PodCondition{
		Type: t, Status: value, Reason: reason, LastTransitionTime: *stamp(now), ObservedGeneration: pod.Generation,
	}
	for i := range status.Conditions {
		if old := &status.Conditions[i]; old.Type == t {
			if old.Status == value {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	status.Conditions = append(status.Conditions, c)
}

func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}

func hostIP(node *v1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			return a.Address
		}
	}
	return "192.0.2.2"
}

// podIP makes up an address from the UID. Nothing routes to it, so it does not
// matter that two pods may share one.
func podIP(pod *v1.Pod, node *v1.Node) string {
	if pod.Spec.HostNetwork {
		return hostIP(node)
	}
	h := uint32(2166136261)
	for i := range len(pod.UID) {
		h = (h ^ uint32(pod.UID[i])) * 16777619
	}
	return fmt.Sprintf("10.%d.%d.%d", 192+h>>16&63, h>>8&255, 1+h%254)
}
