// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Upstream makes the oracle a subject.
type Upstream struct{ *oracle.Oracle }

// Load implements Subject.
func (u Upstream) Load(s *scenario.Scenario) (Cluster, error) {
	c, err := u.Cluster(s)
	if err != nil {
		return nil, err
	}
	return c, nil
}
