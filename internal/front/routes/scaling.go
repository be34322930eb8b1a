package routes

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/autoscale"
)

// serviceScaling is Application Auto Scaling in signatures and policies.
const serviceScaling = "application-autoscaling"

// Scaling returns the operations of autoscaling. wrapCreate is as for Operations. Policies allow them
// for the resource "*".
func Scaling(s *autoscale.Scaler, wrapCreate func(Do) Do) (actions []wire.Action) {
	for _, op := range s.Operations() {
		do := bind(op)
		if wrapCreate != nil && (strings.HasPrefix(op.Name, "Register") || strings.HasPrefix(op.Name, "Put")) {
			do = wrapCreate(do)
		}
		actions = append(actions, wire.Action{Service: serviceScaling, Target: "AnyScaleFrontendService." + op.Name, Do: do})
	}
	return actions
}
