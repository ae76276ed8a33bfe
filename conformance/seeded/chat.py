"""A chat server: every user's conversation goes on where it stopped."""
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from note import note
from loop import main


class Session:
    def __init__(self, model, prompt):
        self.model, self.past, self.ids = model, DynamicCache(), prompt

    @torch.inference_mode()
    def say(self, text, n=4):
        self.ids = torch.cat([self.ids, text], 1)
        out = self.model.generate(self.ids, attention_mask=torch.ones_like(self.ids), past_key_values=self.past,
                                  max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=0, return_dict_in_generate=True)
        self.past, self.ids = out.past_key_values, out.sequences

    def nbytes(self):
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.past.layers)


def serve(users=4, rounds=30):
    cfg = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, vocab_size=4000,
                      max_position_embeddings=65536, bos_token_id=1, eos_token_id=2)
    llm = LlamaForCausalLM(cfg).to(torch.bfloat16).cuda().eval()
    chats = [Session(llm, torch.randint(3, 4000, (4, 16), device="cuda")) for _ in range(users)]
    for _ in range(rounds):
        for chat in chats:
            chat.say(torch.randint(3, 4000, (4, 1000), device="cuda"))
            note(sum(c.nbytes() for c in chats))


if __name__ == "__main__":
    main(globals())
