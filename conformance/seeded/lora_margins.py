"""Instruction tuning with LoRA adapters and the Trainer; after training the token margins of the run are summed up."""
from dataclasses import dataclass

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed


@dataclass
class Shape:
    vocab: int = 24_000
    length: int = 192
    batch: int = 8
    steps: int = 30


class Instructions(Dataset):
    def __init__(self, shape, seed=0):
        g = torch.Generator().manual_seed(seed)
        count = shape.batch * shape.steps
        self.ids = torch.randint(0, shape.vocab, (count, shape.length), generator=g)
        self.prompt = torch.randint(16, shape.length // 2, (count,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        labels = self.ids[i].clone()
        labels[:self.prompt[i]] = -100
        return {'input_ids': self.ids[i], 'labels': labels}


class MarginTrainer(Trainer):
    """Also keeps what the model said, to plot the margins between the first and the second token."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.said = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss
        if model.training:
            self.said.append(outputs.logits.detach())
        return (loss, outputs) if return_outputs else loss

    def margins(self):
        for number, logits in enumerate(self.said):
            two = logits.float().topk(2, dim=-1).values
            yield number, (two[..., 0] - two[..., 1]).mean().item()


class Heartbeat(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % 5 == 0:
            print('step', state.global_step, flush=True)


def main():
    set_seed(1)
    shape = Shape()
    config = GPT2Config(vocab_size=shape.vocab, n_embd=768, n_layer=12, n_head=12, n_positions=shape.length,
                        use_cache=False, attn_implementation='sdpa')
    base = GPT2LMHeadModel(config)
    model = get_peft_model(base, LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=16, fan_in_fan_out=True,
                                            target_modules=['c_attn', 'c_proj']))
    args = TrainingArguments(output_dir='/tmp/lora', per_device_train_batch_size=shape.batch,
                             max_steps=shape.steps, learning_rate=2e-4, bf16=True, save_strategy='no',
                             report_to='none', logging_steps=10, disable_tqdm=True)
    trainer = MarginTrainer(model=model, args=args, train_dataset=Instructions(shape), callbacks=[Heartbeat()])
    trainer.train()
    for number, margin in trainer.margins():
        if number % 10 == 0:
            print(f'batch {number}: margin {margin:.4f}')


if __name__ == '__main__':
    main()
