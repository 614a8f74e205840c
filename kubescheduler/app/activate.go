// SPDX-License-Identifier: Apache-2.0

package app

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// entity returns a pod in the queue as upstream's type, which plugins assert. A pod group stays as it is: upstream's
// type holds all its pods.
func entity(of fwk.QueuedEntityInfo) fwk.QueuedEntityInfo {
	withPod, has := of.(interface{ GetPodInfo() fwk.PodInfo })
	if !has || of.Type() != fwk.PodKeyType {
		return of
	}
	// Terms of affinity that cannot be read leave the rest, as in upstream's queue.
	info, _ := upstream.NewPodInfo(withPod.GetPodInfo().GetPod())
	return &upstream.QueuedPodInfo{PodInfo: info, QueueingParams: upstream.QueueingParams{
		Timestamp: of.GetTimestamp(), Attempts: of.GetAttempts(), BackoffExpiration: of.GetBackoffExpiration(),
		UnschedulableCount: of.GetUnschedulableCount(), ConsecutiveErrorsCount: of.GetConsecutiveErrorsCount(),
		InitialAttemptTimestamp: of.GetInitialAttemptTimestamp(), UnschedulablePlugins: of.GetUnschedulablePlugins(),
		PendingPlugins: of.GetPendingPlugins(), GatingPlugin: of.GetGatingPlugin(),
	}}
}

// Hooks returns what lets plugins activate pods through the CycleState, as upstream's schedule_one.go does, and what
// gives Less upstream's type for pods. A program that uses Registrations passes it to Plugins.WithFrameworkHooks.
func Hooks() framework.Hooks {
	return framework.Hooks{
		Entity: entity,
		Began: func(state fwk.CycleState) {
			state.Write(upstream.PodsToActivateKey, upstream.NewPodsToActivate())
		},
		Activated: func(state fwk.CycleState) map[string]*v1.Pod {
			data, err := state.Read(upstream.PodsToActivateKey)
			if err != nil {
				return nil // a plugin removed it
			}
			named, is := data.(*upstream.PodsToActivate)
			if !is {
				return nil // a plugin replaced it
			}
			named.Lock()
			defer named.Unlock()
			pods := named.Map
			named.Map = map[string]*v1.Pod{}
			return pods
		},
	}
}
