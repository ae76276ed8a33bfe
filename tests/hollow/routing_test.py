"""The choices that routers of experts are given: by each rule, and to whom.

    python3 routing_test.py
"""

import collections
import sys
import types
import unittest

from python_test import PYTHON_SIDE

sys.path.insert(0, PYTHON_SIDE)

from ashlar_hollow import routing  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

TOPK = types.SimpleNamespace(name="topk")
ARGMAX = types.SimpleNamespace(name="argmax")


class Router(object):
    """As those of transformers: what it holds says what its topk is for."""

    def __init__(self, rule, **says):
        self.rule = rule
        self.__dict__.update(says)

    def asks(self, scores, k):
        return self.rule.choice(TOPK, (scores, k), {}, torch.topk(scores, k))

    def asks_for_one(self, scores):
        return self.rule.choice(ARGMAX, (scores,), {}, torch.argmax(scores, dim=1))


@unittest.skipIf(torch is None, "no PyTorch here")
class Choices(unittest.TestCase):
    def loads(self, rule, tokens=96, k=2, experts=8):
        chosen = routing.Routing(torch, rule).experts_of(tokens, k, experts)
        self.assertTrue(all(len(set(row)) == k for row in chosen.tolist()), "an expert of a token twice")
        counts = collections.Counter(chosen.flatten().tolist())
        return [counts[expert] for expert in range(experts)]

    def test_balanced_spreads_evenly_but_for_one(self):
        self.assertEqual(self.loads("balanced"), [24] * 8)
        self.assertLessEqual(max(self.loads("balanced", 97, 3)) - min(self.loads("balanced", 97, 3)), 1)

    def test_worst_gives_all_to_the_same(self):
        self.assertEqual(self.loads("worst"), [96, 96] + [0] * 6)

    def test_random_goes_by_its_seed(self):
        self.assertEqual(self.loads("random:3"), self.loads("random:3"))
        self.assertNotEqual(self.loads("random:3"), self.loads("random:4"))
        self.assertEqual(sum(self.loads("random:3")), 192)

    def test_a_router_draws_the_same_again_and_another_router_otherwise(self):
        rule, scores = routing.Routing(torch, "random:3"), torch.rand(64, 8)
        first, second = (Router(rule, top_k=2, num_experts=8) for _ in range(2))
        drawn = first.asks(scores, 2)[1]
        other = second.asks(scores, 2)[1]
        self.assertTrue(torch.equal(first.asks(scores, 2)[1], drawn))
        self.assertFalse(torch.equal(other, drawn))

    def test_one_expert_after_the_other_makes_the_same_choice(self):
        scores, gate = torch.rand(96, 8), {"wg": torch.nn.Linear(4, 8)}
        for rule in ("balanced", "worst", "random:3"):
            routing_rule = routing.Routing(torch, rule)
            router = Router(routing_rule, k=2, _modules=gate)
            for _ in range(2):  # of two passes each
                both = torch.stack([router.asks_for_one(scores)[1] for _ in range(2)], dim=1)
                self.assertTrue(torch.equal(both, routing_rule.experts_of(96, 2, 8)), rule)
        self.assertIsNotNone(Router(routing_rule, k=1, _modules=gate).asks_for_one(scores))
        for says in ({"k": 3, "_modules": gate}, {"k": 2}, {"_modules": gate}, {"k": 2, "_modules": {"wg": torch.nn.Linear(4, 9)}}):
            self.assertIsNone(Router(routing_rule, **says).asks_for_one(scores), says)

    def test_a_router_is_told_by_what_it_says_of_itself(self):
        scores = torch.rand(16, 8)
        rule = routing.Routing(torch, "worst")
        self.assertIsNotNone(Router(rule, top_k=2, num_experts=8).asks(scores, 2))
        self.assertIsNotNone(Router(rule, top_k=2, n_routed_experts=8).asks(scores, 2))
        self.assertIsNone(Router(rule, top_k=2, num_experts=8).asks(scores, 3), "another k")
        self.assertIsNone(Router(rule, top_k=2, num_experts=8).asks(torch.rand(16, 4), 2), "groups of experts")
        self.assertIsNone(Router(rule).asks(scores, 2), "no router")

    def test_the_choice_has_the_shape_of_the_indices(self):
        rule = routing.Routing(torch, "balanced")
        indices, choice = Router(rule, top_k=2, num_experts=8).asks(torch.rand(3, 5, 8), 2)
        self.assertEqual(choice.shape, indices.shape)


class Rules(unittest.TestCase):
    def test_what_is_not_known_is_no_rule(self):
        for text in ("balanced", "worst", "random:7"):
            self.assertEqual(routing.rule_of(text), text)
        for text in (None, "", "best", "random:x", "worst:1"):
            self.assertIsNone(routing.rule_of(text), text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
