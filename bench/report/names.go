// SPDX-License-Identifier: Apache-2.0

package report

// The schedulers that can be measured.
const (
	Kumiki   = "kumiki"
	Upstream = "kube-scheduler"
	Null     = "null"
	// CreateOnly is no scheduler: it measures the creation of the pods alone, without binding them.
	CreateOnly = "create-only"
)
