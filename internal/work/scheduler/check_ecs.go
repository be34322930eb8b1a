package scheduler

import (
	"maps"
	"slices"
	"unicode/utf8"
)

var (
	enumLaunchType     = []string{"EC2", "FARGATE", "EXTERNAL"}
	enumAssignPublicIp = []string{"ENABLED", "DISABLED"}
	enumConstraint     = []string{"distinctInstance", "memberOf"}
	enumStrategy       = []string{"random", "spread", "binpack"}
	enumPropagateTags  = []string{"TASK_DEFINITION"}
)

// ecs checks the shape of an ECS task's parameters.
func (s *shape) ecs(path string, p *EcsParameters) {
	s.required(path+".taskDefinitionArn", p.TaskDefinitionArn, 1, arnMax, nil)
	s.number(path+".taskCount", p.TaskCount, 1, 10)
	s.enum(path+".launchType", p.LaunchType, enumLaunchType)
	if n := p.NetworkConfiguration; n != nil && n.AwsvpcConfiguration != nil {
		s.network(path+".networkConfiguration.awsvpcConfiguration", n.AwsvpcConfiguration)
	}
	s.text(path+".platformVersion", p.PlatformVersion, 1, 64, nil)
	s.text(path+".group", p.Group, 1, 255, nil)
	s.count(path+".capacityProviderStrategy", len(p.CapacityProviderStrategy), 0, 6)
	for i, c := range p.CapacityProviderStrategy {
		at := member(path+".capacityProviderStrategy", i)
		s.required(at+".capacityProvider", c.CapacityProvider, 1, 255, nil)
		s.number(at+".weight", c.Weight, 0, 1000)
		s.number(at+".base", c.Base, 0, 100_000)
	}
	s.count(path+".placementConstraints", len(p.PlacementConstraints), 0, 10)
	for i, c := range p.PlacementConstraints {
		at := member(path+".placementConstraints", i)
		s.enum(at+".type", c.Type, enumConstraint)
		s.text(at+".expression", c.Expression, 0, 2000, nil)
	}
	s.count(path+".placementStrategy", len(p.PlacementStrategy), 0, 5)
	for i, c := range p.PlacementStrategy {
		at := member(path+".placementStrategy", i)
		s.enum(at+".type", c.Type, enumStrategy)
		s.text(at+".field", c.Field, 0, 255, nil)
	}
	s.enum(path+".propagateTags", p.PropagateTags, enumPropagateTags)
	s.text(path+".referenceId", p.ReferenceId, 0, 1024, nil)
	s.ecsTags(path+".tags", p.Tags)
}

func (s *shape) network(path string, c *AwsvpcConfiguration) {
	if s.Required(path+".subnets", c.Subnets != nil); c.Subnets != nil {
		s.texts(path+".subnets", c.Subnets, 1, 16)
	}
	if c.SecurityGroups != nil {
		s.texts(path+".securityGroups", c.SecurityGroups, 1, 5)
	}
	s.enum(path+".assignPublicIp", c.AssignPublicIp, enumAssignPublicIp)
}

// texts checks a list of subnets or security groups.
func (s *shape) texts(path string, list []string, least, most int) {
	s.count(path, len(list), least, most)
	for i := range list {
		s.text(member(path, i), &list[i], 1, 1000, nil)
	}
}

// ecsTags checks a list of maps from keys to values.
func (s *shape) ecsTags(path string, list []map[string]*string) {
	s.count(path, len(list), 0, 50)
	for i, tags := range list {
		at := member(path, i)
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			if n := utf8.RuneCountInString(key); n < 1 || n > tagKeyMax {
				s.Length(at+".key", key, 1, tagKeyMax)
			}
			s.required(at+".value", tags[key], 1, tagValueMax, nil)
		}
	}
}

// checkECS checks an ECS task's parameters against each other.
func checkECS(p *EcsParameters) error {
	if orElse(p.LaunchType, "") == "FARGATE" && (p.NetworkConfiguration == nil || p.NetworkConfiguration.AwsvpcConfiguration == nil) {
		return invalid("Parameter NetworkConfiguration must be specified for the target when launch type is FARGATE")
	}
	return nil
}
