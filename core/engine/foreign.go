// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/kumiki-scheduler/kumiki/core/place"

// Foreign is the port through which code that is not native takes part in a decision.
type Foreign = place.Foreign
