// SPDX-License-Identifier: Apache-2.0

package e2e

// Settings that hold for a whole scheduler and not for one profile, so that each needs a scheduler of its own.
