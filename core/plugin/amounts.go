// SPDX-License-Identifier: Apache-2.0

package plugin

import v1 "k8s.io/api/core/v1"

// AmountFilter is a PodFilter that looks at how much the pods of a node hold together, and at nothing else of them.
type AmountFilter interface {
	PodFilter
	// Amounts lists what the pod needs: a node fits where requested plus amount is at most allocatable, for each of
	// them. ok is false where the filter asks for more than that, or for something else.
	Amounts() (needs []Amount, ok bool)
}

// Amount is one need of a pod.
type Amount struct {
	Name   v1.ResourceName
	Amount int64
	Reason string // what is said of a node that cannot meet it
	// Offered is what every node counts as offering; 0 for what it says that it offers.
	Offered int64
}
